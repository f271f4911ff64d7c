// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/feature"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/apiserver"
)

const typesOfGroup = "/apis/configbutler.ai/v1alpha1"

// errorLog is what upstream's handlers have logged as errors.
type errorLog struct {
	mu    sync.Mutex
	lines []string
}

// newErrorLog takes the place of what logs such errors, until the test ends.
func newErrorLog(t *testing.T) *errorLog {
	t.Helper()
	log, before := &errorLog{}, runtime.ErrorHandlers
	runtime.ErrorHandlers = []runtime.ErrorHandler{func(_ context.Context, err error, msg string, more ...any) {
		log.mu.Lock()
		defer log.mu.Unlock()
		log.lines = append(log.lines, fmt.Sprint(msg, err, more))
	}}
	t.Cleanup(func() { runtime.ErrorHandlers = before })
	return log
}

func (l *errorLog) logged() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

// chain puts a handler behind the filters of the server.
func chain(handler http.Handler) http.Handler {
	config := apiserver.NewConfig(apiserver.NewScheme(), apiserver.NewCodecs(apiserver.NewScheme()))
	config.Generic.FeatureGate = feature.DefaultFeatureGate
	config.Generic.RequestInfoResolver = genericapiserver.NewRequestInfoResolver(&config.Generic.Config)
	return config.Generic.BuildHandlerChainFunc(handler, &config.Generic.Config)
}

// answerTypes is how discovery answers, with more than connections buffer.
func answerTypes(w http.ResponseWriter, r *http.Request) {
	types := slices.Repeat([]metav1.APIResource{{Name: "gitdestinations", Kind: "GitDestination", Verbs: metav1.Verbs{"get", "list"}}}, 200)
	codecs := apiserver.NewCodecs(apiserver.NewScheme())
	responsewriters.WriteObjectNegotiated(codecs, negotiation.DefaultEndpointRestrictions, v1alpha1.SchemeGroupVersion, w, r,
		http.StatusOK, &metav1.APIResourceList{GroupVersion: v1alpha1.SchemeGroupVersion.String(), APIResources: types}, false)
}

// kube-apiserver's aggregator cancels four of five discovery requests.
func TestCancelledDiscoveryLogsNothing(t *testing.T) {
	for _, path := range []string{"/apis", "/apis/configbutler.ai", typesOfGroup} {
		t.Run(path, func(t *testing.T) {
			log := newErrorLog(t)
			begun, ended := make(chan struct{}), make(chan struct{})
			var client context.Context
			behind := chain(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(ended)
				close(begun)
				<-client.Done()
				answerTypes(w, r)
			}))
			served := make(chan struct{})
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(served)
				client = r.Context()
				behind.ServeHTTP(w, r)
			}))
			server.EnableHTTP2 = true
			server.StartTLS()
			defer server.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			answered := make(chan error, 1)
			go func() { answered <- get(ctx, server, path) }()
			receive(t, "the request", begun)
			cancel()
			if err := <-answered; !errors.Is(err, context.Canceled) {
				t.Fatalf("the client got %v", err)
			}
			receive(t, "the handler", ended)
			receive(t, "the filters", served)
			if lines := log.logged(); len(lines) > 0 {
				t.Errorf("logged: %q", lines)
			}
		})
	}
}

// get sends a request, of which only the error counts.
func get(ctx context.Context, server *httptest.Server, path string) error {
	asked, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
	if err != nil {
		return err
	}
	response, err := server.Client().Do(asked)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// refusingWriter cannot be written to.
type refusingWriter struct{ *httptest.ResponseRecorder }

var errNoSpace = errors.New("no buffer space")

func (refusingWriter) Write([]byte) (int, error) { return 0, errNoSpace }

// CloseNotify is what the filters expect of writers.
func (refusingWriter) CloseNotify() <-chan bool { return nil }

func TestDiscoveryThatCannotBeWrittenIsLogged(t *testing.T) {
	log := newErrorLog(t)
	chain(http.HandlerFunc(answerTypes)).ServeHTTP(refusingWriter{httptest.NewRecorder()},
		httptest.NewRequestWithContext(t.Context(), http.MethodGet, typesOfGroup, nil))
	if lines := log.logged(); len(lines) == 0 {
		t.Error("nothing is logged")
	}
}
