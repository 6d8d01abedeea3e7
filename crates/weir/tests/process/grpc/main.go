// A server of gRPC and a client that calls it, for the tests of Weir: both print lines, and the client fails with the first call that
// does not end as it should.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const service = "test.Calls"

// Calls that ended because their client had left.
var left = make(chan string, 100)

var state = health.NewServer()

func main() {
	var err error
	if os.Args[1] == "server" {
		err = serve()
	} else {
		err = call(os.Args[2], os.Args[3] == "tls")
	}
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

type calls struct{}

func bytesOf(payload []byte) *wrapperspb.BytesValue { return &wrapperspb.BytesValue{Value: payload} }

// Answers with what it was asked; words order another end.
func unary(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	asked := &wrapperspb.BytesValue{}
	if err := decode(asked); err != nil {
		return nil, err
	}
	grpc.SetTrailer(ctx, metadata.Pairs("x-trailer", "behind"))
	switch word := string(asked.Value); {
	case word == "fail":
		return nil, status.Error(codes.NotFound, "no such: thing")
	case word == "wait":
		<-ctx.Done()
		left <- "unary"
		return nil, ctx.Err()
	case word == "left":
		return bytesOf([]byte(<-left)), nil
	case word == "ill":
		state.SetServingStatus(service, healthpb.HealthCheckResponse_NOT_SERVING)
	case word == "well":
		state.SetServingStatus(service, healthpb.HealthCheckResponse_SERVING)
	}
	return asked, nil
}

// Answers each message with itself.
func chat(_ any, stream grpc.ServerStream) error {
	for {
		asked := &wrapperspb.BytesValue{}
		if err := stream.RecvMsg(asked); err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
		if err := stream.SendMsg(asked); err != nil {
			return err
		}
	}
}

// Answers all messages with one.
func collect(_ any, stream grpc.ServerStream) error {
	var all []byte
	for {
		asked := &wrapperspb.BytesValue{}
		err := stream.RecvMsg(asked)
		if err == io.EOF {
			return stream.SendMsg(bytesOf(all))
		}
		if err != nil {
			return err
		}
		all = append(all, asked.Value...)
	}
}

// Sends messages until the client leaves.
func pour(_ any, stream grpc.ServerStream) error {
	asked := &wrapperspb.BytesValue{}
	if err := stream.RecvMsg(asked); err != nil {
		return err
	}
	for stream.Context().Err() == nil {
		if stream.SendMsg(asked) != nil {
			break
		}
	}
	left <- "pour"
	return stream.Context().Err()
}

func serve() error {
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: service,
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "Unary", Handler: unary}},
		Streams: []grpc.StreamDesc{
			{StreamName: "Chat", Handler: chat, ServerStreams: true, ClientStreams: true},
			{StreamName: "Collect", Handler: collect, ClientStreams: true},
			{StreamName: "Pour", Handler: pour, ServerStreams: true},
		},
	}, calls{})
	healthpb.RegisterHealthServer(server, state)
	state.SetServingStatus(service, healthpb.HealthCheckResponse_SERVING)
	fmt.Println("listening", socket.Addr().(*net.TCPAddr).Port)
	return server.Serve(socket)
}

type caller struct{ *grpc.ClientConn }

func (c caller) unary(ctx context.Context, word []byte, options ...grpc.CallOption) ([]byte, error) {
	answer := &wrapperspb.BytesValue{}
	err := c.Invoke(ctx, "/"+service+"/Unary", bytesOf(word), answer, options...)
	return answer.Value, err
}

func (c caller) stream(ctx context.Context, name string) (grpc.ClientStream, error) {
	kind := &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
	return c.NewStream(ctx, kind, "/"+service+"/"+name)
}

func call(target string, secure bool) error {
	credential := insecure.NewCredentials()
	if secure {
		credential = credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})
	}
	conn, err := grpc.NewClient("passthrough:///"+target, grpc.WithTransportCredentials(credential))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	c := caller{conn}
	words := os.Args[4:]
	if len(words) > 0 {
		for _, word := range words {
			if _, err := c.unary(ctx, []byte(word)); err != nil {
				return fmt.Errorf("%s: %w", word, err)
			}
		}
		return nil
	}
	for _, one := range []struct {
		name string
		run  func(context.Context, caller) error
	}{
		{"unary", unaryCase}, {"status", statusCase}, {"chat", chatCase}, {"collect", collectCase},
		{"cancel", cancelCase}, {"deadline", deadlineCase}, {"many", manyCase}, {"watch", watchCase},
	} {
		if err := one.run(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
		fmt.Println("ok", one.name)
	}
	return nil
}

func unaryCase(ctx context.Context, c caller) error {
	for _, size := range []int{0, 1, 100_000, 3_000_000} {
		word := bytes.Repeat([]byte{'x'}, size)
		var trailer metadata.MD
		answer, err := c.unary(ctx, word, grpc.Trailer(&trailer))
		if err != nil {
			return err
		}
		if !bytes.Equal(answer, word) || strings.Join(trailer["x-trailer"], ",") != "behind" {
			return fmt.Errorf("%d bytes of %d, trailer %v", len(answer), size, trailer)
		}
	}
	return nil
}

func statusCase(ctx context.Context, c caller) error {
	_, err := c.unary(ctx, []byte("fail"))
	if status.Code(err) != codes.NotFound || status.Convert(err).Message() != "no such: thing" {
		return fmt.Errorf("%v", err)
	}
	if err := c.Invoke(ctx, "/"+service+"/Nothing", bytesOf(nil), bytesOf(nil)); status.Code(err) != codes.Unimplemented {
		return fmt.Errorf("%v", err)
	}
	return nil
}

// The answer to a message comes before the next one is sent.
func chatCase(ctx context.Context, c caller) error {
	stream, err := c.stream(ctx, "Chat")
	if err != nil {
		return err
	}
	for round := 0; round < 20; round++ {
		word := bytes.Repeat([]byte{byte(round)}, round*5_000)
		if err := stream.SendMsg(bytesOf(word)); err != nil {
			return err
		}
		answer := &wrapperspb.BytesValue{}
		if err := stream.RecvMsg(answer); err != nil {
			return err
		}
		if !bytes.Equal(answer.Value, word) {
			return fmt.Errorf("round %d", round)
		}
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	if err := stream.RecvMsg(bytesOf(nil)); err != io.EOF {
		return fmt.Errorf("not the end: %v", err)
	}
	return nil
}

func collectCase(ctx context.Context, c caller) error {
	stream, err := c.stream(ctx, "Collect")
	if err != nil {
		return err
	}
	for at := 0; at < 50; at++ {
		if err := stream.SendMsg(bytesOf(bytes.Repeat([]byte{'c'}, 10_000))); err != nil {
			return err
		}
	}
	answer := &wrapperspb.BytesValue{}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	if err := stream.RecvMsg(answer); err != nil {
		return err
	}
	if len(answer.Value) != 500_000 {
		return fmt.Errorf("%d bytes", len(answer.Value))
	}
	return nil
}

// Whose call ended last on the server because its client had left.
func (c caller) expectLeft(ctx context.Context, name string) error {
	word, err := c.unary(ctx, []byte("left"))
	if err == nil && string(word) != name {
		err = fmt.Errorf("%q left instead of %q", word, name)
	}
	return err
}

func cancelCase(ctx context.Context, c caller) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.stream(inner, "Pour")
	if err != nil {
		return err
	}
	if err := stream.SendMsg(bytesOf(bytes.Repeat([]byte{'p'}, 1_000))); err != nil {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for at := 0; at < 100; at++ {
		if err := stream.RecvMsg(&wrapperspb.BytesValue{}); err != nil {
			return err
		}
	}
	cancel()
	for err == nil {
		err = stream.RecvMsg(&wrapperspb.BytesValue{})
	}
	if status.Code(err) != codes.Canceled {
		return err
	}
	return c.expectLeft(ctx, "pour")
}

func deadlineCase(ctx context.Context, c caller) error {
	inner, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if _, err := c.unary(inner, []byte("wait")); status.Code(err) != codes.DeadlineExceeded {
		return fmt.Errorf("%v", err)
	}
	return c.expectLeft(ctx, "unary")
}

// More calls at a time than a connection carries.
func manyCase(ctx context.Context, c caller) error {
	done := make(chan error)
	for at := 0; at < 300; at++ {
		go func() {
			_, err := c.unary(ctx, bytes.Repeat([]byte{'m'}, 20_000))
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

func watchCase(ctx context.Context, c caller) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := healthpb.NewHealthClient(c).Watch(inner, &healthpb.HealthCheckRequest{Service: service})
	if err != nil {
		return err
	}
	answer, err := stream.Recv()
	if err == nil && answer.Status != healthpb.HealthCheckResponse_SERVING {
		err = fmt.Errorf("%v", answer)
	}
	return err
}
