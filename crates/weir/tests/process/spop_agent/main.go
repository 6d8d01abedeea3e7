// An agent made with haproxy-go, the library that coraza-spoa speaks SPOP with: it refuses queries with "passwd", and tells
// what it was told. Its argument is the socket to listen on.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/dropmorepackets/haproxy-go/pkg/encoding"
	"github.com/dropmorepackets/haproxy-go/spop"
)

func answer(_ context.Context, actions *encoding.ActionWriter, message *encoding.Message) {
	entry := encoding.AcquireKVEntry()
	defer encoding.ReleaseKVEntry(entry)
	told := []string{string(message.NameBytes())}
	action := "allow"
	for message.KV.Next(entry) {
		value := entry.Value()
		if bytes, ok := value.([]byte); ok {
			value = fmt.Sprintf("%q", bytes)
		}
		told = append(told, fmt.Sprintf("%s=%v", entry.NameBytes(), value))
		if entry.NameEquals("query") && strings.Contains(string(entry.ValueBytes()), "passwd") {
			action = "deny"
		}
	}
	for _, err := range []error{
		message.KV.Error(),
		actions.SetString(encoding.VarScopeTransaction, "action", action),
		actions.SetString(encoding.VarScopeTransaction, "told", strings.Join(told, " ")),
		actions.SetInt64(encoding.VarScopeRequest, "status", 403),
		actions.SetBool(encoding.VarScopeSession, "known", true),
		actions.SetAddr(encoding.VarScopeProcess, "last", netip.MustParseAddr("2001:db8::1")),
		actions.Unset(encoding.VarScopeTransaction, "stale"),
	} {
		if err != nil {
			log.Println(err)
		}
	}
}

func main() {
	listener, err := net.Listen("unix", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	agent := spop.Agent{Handler: spop.HandlerFunc(answer)}
	log.Fatal(agent.Serve(listener))
}
