// An agent that asks Coraza about requests, over SPOP. Its arguments: the socket or address to listen on, and a file with
// directives of Coraza. It sets `action` to `allow` or `deny`, and `rule` to the rule that has decided.
package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log"
	"net"
	"net/netip"
	"os"
	"strings"

	coreruleset "github.com/corazawaf/coraza-coreruleset/v4"
	"github.com/corazawaf/coraza/v3"
	"github.com/corazawaf/coraza/v3/types"
	"github.com/dropmorepackets/haproxy-go/pkg/encoding"
	"github.com/dropmorepackets/haproxy-go/spop"
)

// What a message says about a request.
type request struct {
	source, target         netip.Addr
	sourcePort, targetPort int
	method, path, query    string
	version                string
	headers, body          []byte
}

func read(message *encoding.Message) (request, error) {
	var found request
	entry := encoding.AcquireKVEntry()
	defer encoding.ReleaseKVEntry(entry)
	for message.KV.Next(entry) {
		switch name := string(entry.NameBytes()); name {
		case "src-ip":
			found.source = entry.ValueAddr()
		case "dst-ip":
			found.target = entry.ValueAddr()
		case "src-port":
			found.sourcePort = int(entry.ValueInt())
		case "dst-port":
			found.targetPort = int(entry.ValueInt())
		case "method":
			found.method = string(entry.ValueBytes())
		case "path":
			found.path = string(entry.ValueBytes())
		case "query":
			found.query = string(entry.ValueBytes())
		case "version":
			found.version = string(entry.ValueBytes())
		case "headers":
			found.headers = bytes.Clone(entry.ValueBytes())
		case "body":
			found.body = bytes.Clone(entry.ValueBytes())
		}
	}
	return found, message.KV.Error()
}

// Returns what the rules do with the request; nil: they let it pass.
func decide(waf coraza.WAF, asked request) (*types.Interruption, error) {
	transaction := waf.NewTransaction()
	defer transaction.Close()
	if transaction.IsRuleEngineOff() {
		return nil, nil
	}
	transaction.ProcessConnection(asked.source.String(), asked.sourcePort, asked.target.String(), asked.targetPort)
	uri := asked.path
	if asked.query != "" {
		uri += "?" + asked.query
	}
	transaction.ProcessURI(uri, asked.method, "HTTP/"+asked.version)
	lines := bufio.NewScanner(bytes.NewReader(asked.headers))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, value, isField := strings.Cut(lines.Text(), ":")
		if !isField {
			continue
		}
		value = strings.TrimSpace(value)
		transaction.AddRequestHeader(name, value)
		if strings.EqualFold(name, "host") {
			transaction.SetServerName(value)
		}
	}
	if stopped := transaction.ProcessRequestHeaders(); stopped != nil {
		return stopped, nil
	}
	if len(asked.body) > 0 {
		if stopped, _, err := transaction.WriteRequestBody(asked.body); stopped != nil || err != nil {
			return stopped, err
		}
	}
	return transaction.ProcessRequestBody()
}

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: coraza <socket or address> <file of directives>")
	}
	directives, err := os.ReadFile(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	// Names that begin with @ are those of the OWASP Core Rule Set.
	waf, err := coraza.NewWAF(coraza.NewWAFConfig().WithRootFS(coreruleset.FS).WithDirectives(string(directives)))
	if err != nil {
		log.Fatal(err)
	}
	answer := func(_ context.Context, actions *encoding.ActionWriter, message *encoding.Message) {
		asked, err := read(message)
		if err != nil {
			log.Println(err)
			return
		}
		action, rule := "allow", 0
		stopped, err := decide(waf, asked)
		if err != nil {
			log.Println(err)
			return
		}
		if stopped != nil {
			action, rule = "deny", stopped.RuleID
		}
		for _, err := range []error{
			actions.SetString(encoding.VarScopeTransaction, "action", action),
			actions.SetInt64(encoding.VarScopeTransaction, "rule", int64(rule)),
		} {
			if err != nil {
				log.Println(err)
			}
		}
	}
	network := "unix"
	if strings.Contains(os.Args[1], ":") {
		network = "tcp"
	}
	listener, err := net.Listen(network, os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("ready")
	agent := spop.Agent{Handler: spop.HandlerFunc(answer)}
	log.Fatal(agent.Serve(listener))
}
