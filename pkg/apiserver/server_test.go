// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"testing"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"

	"github.com/configbutler/slipstream/pkg/apiserver"
)

// patience bounds what should not take a moment.
const patience = 2 * time.Minute

// newServer answers every request with a handler, on an address of its own.
func newServer(t *testing.T, handler http.Handler) (server *apiserver.Server, url string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := dynamiccertificates.NewStaticCertKeyContent("test", cert, key)
	if err != nil {
		t.Fatal(err)
	}
	config := genericapiserver.NewConfig(apiserver.NewCodecs(apiserver.NewScheme()))
	config.SecureServing = &genericapiserver.SecureServingInfo{Listener: listener, Cert: pair}
	config.LoopbackClientConfig = &rest.Config{}
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	config.ExternalAddress = listener.Addr().String()
	config.BuildHandlerChainFunc = func(http.Handler, *genericapiserver.Config) http.Handler { return handler }
	generic, err := config.Complete(nil).New("test", genericapiserver.NewEmptyDelegate())
	if err != nil {
		t.Fatal(err)
	}
	return &apiserver.Server{Generic: generic}, "https://" + listener.Addr().String()
}

// TestOutlastingTaskHasTheLastRequest ends a server while it answers a request.
func TestOutlastingTaskHasTheLastRequest(t *testing.T) {
	begun, answer, handed := make(chan struct{}), make(chan struct{}), make(chan string, 1)
	server, url := newServer(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(begun)
		<-answer
		handed <- "fact"
	}))
	stopping := make(chan struct{})
	if err := server.AddBackground("say-when-it-stops", func(ctx context.Context) { <-ctx.Done(); close(stopping) }); err != nil {
		t.Fatal(err)
	}
	kept := ""
	server.AddOutlasting(func(ctx context.Context) {
		<-ctx.Done()
		select {
		case kept = <-handed:
		default:
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	answered := make(chan struct{})
	go func() { defer close(answered); request(t, url) }()

	receive(t, "the request", begun)
	stop()
	receive(t, "the shutdown", stopping)
	close(answer)
	select {
	case err := <-ended:
		if err != nil || kept != "fact" {
			t.Errorf("the server ended with %v, and the task had %q", err, kept)
		}
	case <-time.After(patience):
		t.Error("the server does not end")
	}
	receive(t, "the answer", answered)
}

func request(t *testing.T, url string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}}
	asked, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet, url, nil)
	if err != nil {
		t.Error(err)
		return
	}
	response, err := client.Do(asked)
	if err != nil {
		t.Error(err)
		return
	}
	_ = response.Body.Close()
}

func receive(t *testing.T, what string, from <-chan struct{}) {
	t.Helper()
	select {
	case <-from:
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
	}
}
