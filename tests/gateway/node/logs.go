package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	nodeName = "node"
	// The port of the kubelet's API.
	nodePort = 10250
	// The lines that are kept of a pod.
	maxLines = 20000
)

// output is the log of a pod.
type output struct {
	mutex sync.Mutex
	lines []line
}

type line struct {
	time time.Time
	text string
}

// read keeps the lines of a reader until its end.
func (o *output) read(reader io.Reader) {
	scanner := bufio.NewScanner(reader)
	for scanner.Scan() {
		o.mutex.Lock()
		if len(o.lines) < maxLines {
			o.lines = append(o.lines, line{time.Now(), scanner.Text()})
		}
		o.mutex.Unlock()
	}
	// A line that is too long ends the log: the pod must not wait for a reader.
	_, _ = io.Copy(io.Discard, reader)
}

func (o *output) since(since time.Time) string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	var text strings.Builder
	for _, line := range o.lines {
		if !line.time.Before(since) {
			text.WriteString(line.text + "\n")
		}
	}
	return text.String()
}

// logs has the outputs of pods by namespace/name.
type logs struct {
	mutex   sync.Mutex
	outputs map[string]*output
}

// add returns an empty output for a pod.
func (l *logs) add(pod *corev1.Pod) *output {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	output := &output{}
	l.outputs[pod.Namespace+"/"+pod.Name] = output
	return output
}

// ServeHTTP answers GET /containerLogs/NAMESPACE/POD/CONTAINER of the kubelet's API.
func (l *logs) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	if len(parts) != 4 || parts[0] != "containerLogs" {
		http.NotFound(writer, request)
		return
	}
	l.mutex.Lock()
	output := l.outputs[parts[1]+"/"+parts[2]]
	l.mutex.Unlock()
	if output == nil {
		http.NotFound(writer, request)
		return
	}
	since, _ := time.Parse(time.RFC3339, request.URL.Query().Get("sinceTime"))
	_, _ = io.WriteString(writer, output.since(since))
}

// serve serves the logs to the apiserver, which does not verify the certificate.
func (l *logs) serve() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	server := &http.Server{
		Addr:              "127.0.0.1:10250",
		Handler:           l,
		ReadHeaderTimeout: 10 * time.Second,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}},
	}
	return server.ListenAndServeTLS("", "")
}

// register creates the object of the node, by which the apiserver finds the logs.
func (n *node) register(ctx context.Context) error {
	api := n.client.CoreV1().Nodes()
	node, err := api.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = nodePort
	_, err = api.UpdateStatus(ctx, node, metav1.UpdateOptions{})
	return err
}
