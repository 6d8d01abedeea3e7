// What a program with HAProxy's own library for the runtime API does, line by line on standard output.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/haproxytech/client-native/v6/runtime"
	"github.com/haproxytech/client-native/v6/runtime/options"
)

func must(what string, err error) {
	if err != nil {
		fmt.Println(what, "failed:", err)
		os.Exit(1)
	}
}

func state(client runtime.Runtime) string {
	server, err := client.GetServerState("app", "one")
	must("state", err)
	return server.AdminState + "/" + server.OperationalState
}

func main() {
	client, err := runtime.New(context.Background(), options.Socket(os.Args[1]))
	must("connect", err)
	info, err := client.GetInfo()
	must("info", err)
	fmt.Println("maxconn", *info.Info.MaxConn)
	for _, object := range client.GetStats().Stats {
		fmt.Println(object.Type, object.BackendName, object.Name, object.Stats.Status)
	}
	must("maint", client.SetServerState("app", "one", "maint"))
	fmt.Println(state(client))
	must("ready", client.SetServerState("app", "one", "ready"))
	must("weight", client.SetServerWeight("app", "one", "50%"))
	must("address", client.SetServerAddr("app", "one", "127.0.0.1", 18081))
	fmt.Println(state(client))
	must("maxconn", client.SetFrontendMaxConn("web", 77))
	must("add", client.AddServer("app", "more", "127.0.0.1:18082"))
	servers, err := client.GetServersState("app")
	must("states", err)
	for _, server := range servers {
		fmt.Println(server.Name, server.Address, server.AdminState)
	}
	must("delete", client.DeleteServer("app", "more"))
	tables, err := client.ShowTables()
	must("tables", err)
	for _, table := range tables {
		fmt.Println(table.Name, table.Type, *table.Size, *table.Used)
	}
	maps, err := client.ShowMaps()
	must("maps", err)
	fmt.Println("maps", len(maps))
	files, err := client.GetACLFiles()
	must("files", err)
	fmt.Println("lists", len(files))
}
