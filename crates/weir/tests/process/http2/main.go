// A server and a client of Go's net/http, for the tests of Weir: both speak HTTP/2, in clear or by TLS. The client fails with the first
// request that does not end as it should.
package main

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
)

func main() {
	var err error
	if os.Args[1] == "server" {
		err = serve(os.Args[2:])
	} else {
		err = call(os.Args[2], os.Args[3:])
	}
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

// Requests that ended because their client had left.
var left = make(chan string, 100)

// With a certificate by TLS, else in clear.
func serve(certificate []string) error {
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		w.Header().Set("X-Proto", r.Proto)
		w.Header().Set("X-Length", fmt.Sprint(r.ContentLength))
		controller := http.NewResponseController(w)
		controller.EnableFullDuplex()
		buffer := make([]byte, 10_000)
		total := 0
		for {
			count, err := r.Body.Read(buffer)
			total += count
			w.Write(buffer[:count])
			controller.Flush()
			if err != nil {
				break
			}
		}
		w.Header().Set("X-Sum", fmt.Sprintf("%d %s", total, r.Trailer.Get("X-Said")))
	})
	mux.HandleFunc("/cut", func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte("some"))
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	mux.HandleFunc("/early", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</a.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusTeapot)
	})
	mux.HandleFunc("/wait", func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		left <- "wait"
	})
	mux.HandleFunc("/left", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, <-left)
	})
	mux.HandleFunc("/ws", echoSocket)
	server := &http.Server{Handler: mux, Protocols: new(http.Protocols)}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetHTTP2(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	fmt.Println("listening", socket.Addr().(*net.TCPAddr).Port)
	if len(certificate) > 0 {
		return server.ServeTLS(socket, certificate[0], certificate[0])
	}
	return server.Serve(socket)
}

// A web socket (RFC 6455) that sends back what comes, frames or not.
func echoSocket(w http.ResponseWriter, r *http.Request) {
	sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer conn.Close()
	fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Accept: %s\r\n\r\n", base64.StdEncoding.EncodeToString(sum[:]))
	io.Copy(conn, buffered)
}

type caller struct {
	client *http.Client
	base   string
}

// Makes requests of every kind but those.
func call(base string, without []string) error {
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		Protocols:       new(http.Protocols),
	}
	transport.Protocols.SetHTTP2(true)
	transport.Protocols.SetUnencryptedHTTP2(true)
	c := caller{&http.Client{Transport: transport}, base}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for _, one := range []struct {
		name string
		run  func(context.Context, caller) error
	}{
		{"upload", uploadCase}, {"duplex", duplexCase}, {"cut", cutCase}, {"early", earlyCase}, {"cancel", cancelCase},
		{"many", manyCase},
	} {
		if slices.Contains(without, one.name) {
			continue
		}
		if err := one.run(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
		fmt.Println("ok", one.name)
	}
	return nil
}

func (c caller) do(ctx context.Context, method, path string, body io.Reader, change func(*http.Request)) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	if change != nil {
		change(request)
	}
	answer, err := c.client.Do(request)
	if err == nil && answer.ProtoMajor != 2 {
		err = fmt.Errorf("%s", answer.Proto)
	}
	return answer, err
}

// With a length and without one, and with trailers both ways.
func uploadCase(ctx context.Context, c caller) error {
	for _, size := range []int{0, 1, 70_000, 2_000_000} {
		for _, sized := range []bool{true, false} {
			payload := bytes.Repeat([]byte{'u'}, size)
			var body io.Reader = bytes.NewReader(payload)
			if !sized {
				body = io.MultiReader(body)
			}
			answer, err := c.do(ctx, "POST", "/echo", body, func(request *http.Request) {
				if !sized {
					request.Trailer = http.Header{"X-Said": {"behind"}}
				}
			})
			if err != nil {
				return err
			}
			got, err := io.ReadAll(answer.Body)
			if err != nil {
				return err
			}
			said := ""
			if !sized {
				said = "behind"
			}
			if !bytes.Equal(got, payload) || strings.TrimSpace(answer.Trailer.Get("X-Sum")) != strings.TrimSpace(fmt.Sprintf("%d %s", size, said)) {
				return fmt.Errorf("%d bytes of %d, trailers %v", len(got), size, answer.Trailer)
			}
		}
	}
	return nil
}

// The answer to a part of the request comes before the rest is sent.
func duplexCase(ctx context.Context, c caller) error {
	reader, writer := io.Pipe()
	type answered struct {
		answer *http.Response
		err    error
	}
	done := make(chan answered, 1)
	go func() {
		answer, err := c.do(ctx, "POST", "/echo", reader, nil)
		done <- answered{answer, err}
	}()
	word := bytes.Repeat([]byte{'d'}, 3_000)
	if _, err := writer.Write(word); err != nil {
		return err
	}
	result := <-done
	if result.err != nil {
		return result.err
	}
	got := make([]byte, len(word))
	for round := 0; round < 20; round++ {
		if _, err := io.ReadFull(result.answer.Body, got); err != nil {
			return err
		}
		if _, err := writer.Write(word); err != nil {
			return err
		}
	}
	writer.Close()
	_, err := io.ReadAll(result.answer.Body)
	return err
}

// What the server breaks off is broken off at the client.
func cutCase(ctx context.Context, c caller) error {
	answer, err := c.do(ctx, "GET", "/cut", nil, nil)
	if err != nil {
		return err
	}
	if _, err := io.ReadAll(answer.Body); err == nil {
		return errors.New("it looks whole")
	}
	return nil
}

func earlyCase(ctx context.Context, c caller) error {
	answer, err := c.do(ctx, "GET", "/early", nil, nil)
	if err == nil && answer.StatusCode != http.StatusTeapot {
		err = fmt.Errorf("%s", answer.Status)
	}
	return err
}

func cancelCase(ctx context.Context, c caller) error {
	inner, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	if _, err := c.do(inner, "GET", "/wait", nil, nil); !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%v", err)
	}
	answer, err := c.do(ctx, "GET", "/left", nil, nil)
	if err != nil {
		return err
	}
	word, err := io.ReadAll(answer.Body)
	if err == nil && string(word) != "wait" {
		err = fmt.Errorf("%q", word)
	}
	return err
}

func manyCase(ctx context.Context, c caller) error {
	done := make(chan error)
	for at := 0; at < 300; at++ {
		go func() {
			payload := bytes.Repeat([]byte{'m'}, 20_000)
			answer, err := c.do(ctx, "POST", "/echo", bytes.NewReader(payload), nil)
			if err == nil {
				var got []byte
				got, err = io.ReadAll(answer.Body)
				if err == nil && !bytes.Equal(got, payload) {
					err = fmt.Errorf("%d bytes", len(got))
				}
			}
			done <- err
		}()
	}
	var failed error
	for at := 0; at < 300; at++ {
		if err := <-done; err != nil {
			failed = err
		}
	}
	return failed
}
