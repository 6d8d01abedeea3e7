// A client and a server of Go's crypto/tls, for the tests of Weir.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

var versions = map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}

func main() {
	var err error
	switch os.Args[1] {
	case "server":
		err = serve(os.Args[2], os.Args[3])
	case "client":
		err = call(os.Args[2], os.Args[3], os.Args[4], os.Args[5:])
	}
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

// Answers every request with the version and the name of the client's hello.
func serve(certificate, version string) error {
	pair, err := tls.LoadX509KeyPair(certificate, certificate)
	if err != nil {
		return err
	}
	socket, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{pair}, MinVersion: versions[version], MaxVersion: versions[version],
	})
	if err != nil {
		return err
	}
	fmt.Println("listening", socket.Addr().(*net.TCPAddr).Port)
	return http.Serve(socket, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s\n", tls.VersionName(r.TLS.Version), r.TLS.ServerName)
	}))
}

// Two connections, of which the second one resumes the session of the first.
func call(address, version, authority string, own []string) error {
	text, err := os.ReadFile(authority)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	config := &tls.Config{
		ServerName: "example.test", RootCAs: roots, MinVersion: versions[version], MaxVersion: versions[version],
		ClientSessionCache: tls.NewLRUClientSessionCache(4),
	}
	if len(own) > 0 {
		pair, err := tls.LoadX509KeyPair(own[0], own[0])
		if err != nil {
			return err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	for range 2 {
		connection, err := tls.Dial("tcp", address, config)
		if err != nil {
			return err
		}
		fmt.Fprint(connection, "GET / HTTP/1.0\r\n\r\n")
		answer, err := io.ReadAll(connection)
		if err != nil {
			return err
		}
		connection.Close()
		os.Stdout.Write(answer)
	}
	return nil
}
