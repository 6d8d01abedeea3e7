// An OpenID Connect provider on loopback that accepts everyone as one user, without a page. It listens at the address of its argument.
package main

import (
	"log"
	"net"
	"os"

	"github.com/oauth2-proxy/mockoidc"
)

func main() {
	provider, err := mockoidc.NewServer(nil)
	if err != nil {
		log.Fatal(err)
	}
	provider.ClientID, provider.ClientSecret = "weir", "secret"
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	if err := provider.Start(listener, nil); err != nil {
		log.Fatal(err)
	}
	select {}
}
