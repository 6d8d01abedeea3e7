// Command quic-go is the HTTP/3 client and server of ../h3_interop.py.
//
//	quic-go get URL FOLDER [-m POST [-d FILE]]
//	quic-go serve ADDRESS CERTIFICATE
package main

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strconv"

	"github.com/quic-go/quic-go/http3"
)

// pattern returns the body of that size.
func pattern(size int) []byte {
	body := make([]byte, size)
	for at := range body {
		if at < 65536 {
			body[at] = byte(at*131 + size)
		} else {
			body[at] = body[at-65536]
		}
	}
	return body
}

// get writes the answer into a folder, under the last part of the path.
func get(url, folder string, body []byte) error {
	client := &http.Client{Transport: &http3.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	method := http.MethodGet
	if body != nil {
		method = http.MethodPost
	}
	request, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, path.Base(url)), data, 0o600)
}

// serve answers GET /SIZE with the body of that size, and others with the body of the request.
func serve(address, certificate string) error {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body []byte
		if r.Method == http.MethodGet {
			size, _ := strconv.Atoi(path.Base(r.URL.Path))
			body = pattern(size)
		} else {
			body, _ = io.ReadAll(r.Body)
		}
		w.Header().Set("content-length", strconv.Itoa(len(body)))
		_, _ = w.Write(body)
	})
	return (&http3.Server{Addr: address, Handler: handler}).ListenAndServeTLS(certificate, certificate)
}

func run(arguments []string) error {
	switch {
	case len(arguments) == 3 && arguments[0] == "serve":
		return serve(arguments[1], arguments[2])
	case len(arguments) == 3 && arguments[0] == "get":
		return get(arguments[1], arguments[2], nil)
	case len(arguments) == 5 && arguments[0] == "get":
		return get(arguments[1], arguments[2], []byte{})
	case len(arguments) == 7 && arguments[0] == "get":
		body, err := os.ReadFile(arguments[6])
		if err != nil {
			return err
		}
		return get(arguments[1], arguments[2], body)
	}
	return fmt.Errorf("usage: quic-go get URL FOLDER [-m POST [-d FILE]] | serve ADDRESS CERTIFICATE")
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
