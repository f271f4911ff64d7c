// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	basecompatibility "k8s.io/component-base/compatibility"
	baseversion "k8s.io/component-base/version"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/attribution"
	attributionwebhook "github.com/configbutler/slipstream/pkg/attribution/webhook"
	"github.com/configbutler/slipstream/test/devcluster/pki"
	"github.com/configbutler/slipstream/test/testkit"
)

const (
	// secret is the last segment of the webhook's path.
	secret = "0123456789abcdef0123456789abcdef"

	auditPath     = "/audit"
	admissionPath = "/apis/configbutler.ai/v1alpha1/admissionreviews"
	webhookPath   = "/process-validating-webhook/"
)

// recorder is a Recorder that stores facts in memory, or fails.
type recorder struct {
	mu       sync.Mutex
	facts    []attribution.Fact
	fails    bool
	enqueued chan attribution.Fact
}

func (r *recorder) Record(_ context.Context, facts []attribution.Fact) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fails {
		return errors.New("the store is full")
	}
	r.facts = append(r.facts, facts...)
	return nil
}

func (r *recorder) Enqueue(facts ...attribution.Fact) {
	for _, fact := range facts {
		select {
		case r.enqueued <- fact:
		default: // The test does not read them.
		}
	}
}

func (r *recorder) recorded() []attribution.Fact {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.facts)
}

// testServer is a server on its own port, with the endpoints and with the authentication of an aggregated server.
type testServer struct {
	recorder *recorder
	url      string
	// cluster signs the certificates of the cluster's users, proxy that of the aggregator, audit and webhook those of the
	// endpoints' clients.
	cluster, proxy, audit, webhook *pki.Authority
	// folder holds the files that the server watches.
	folder  string
	serving *pki.Authority
}

// newTestServer starts a server. change may modify the configuration of the endpoints and of the server.
func newTestServer(t *testing.T, change func(*testServer, *attributionwebhook.Config, *genericapiserver.Config)) *testServer {
	t.Helper()
	s := &testServer{recorder: &recorder{enqueued: make(chan attribution.Fact, 100)}, folder: t.TempDir()}
	for name, authority := range map[string]**pki.Authority{
		"cluster": &s.cluster, "proxy": &s.proxy, "audit": &s.audit, "webhook": &s.webhook, "serving": &s.serving,
	} {
		*authority = s.newAuthority(t, name)
	}
	s.write(t, "segment", secret+"\n")
	server := s.newConfig(t)
	config := attributionwebhook.Config{
		Recorder: s.recorder, Hash: func(content []byte) string { return string(content) }, Clock: clock.RealClock{},
		AuditClientCAFile: s.file("audit.crt"), AuditClientNames: []string{"kube-apiserver-audit", "another-audit"},
		AdmissionSegmentFile: s.file("segment"),
	}
	if change != nil {
		change(s, &config, server)
	}
	endpoints, err := attributionwebhook.New(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := endpoints.Install(server); err != nil {
		t.Fatal(err)
	}
	s.run(t, server, endpoints)
	return s
}

func (s *testServer) file(name string) string { return filepath.Join(s.folder, name) }

func (s *testServer) write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(s.file(name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// newAuthority creates an authority and writes its certificate to the server's folder.
func (s *testServer) newAuthority(t *testing.T, name string) *pki.Authority {
	t.Helper()
	authority, err := pki.NewAuthority(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := authority.Write(s.folder, name); err != nil {
		t.Fatal(err)
	}
	return authority
}

// newConfig returns the configuration of a server that authenticates the cluster's users and its aggregator, and
// authorizes as permit does.
func (s *testServer) newConfig(t *testing.T) *genericapiserver.Config {
	t.Helper()
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	config := genericapiserver.NewConfig(serializer.NewCodecFactory(scheme))
	config.EffectiveVersion = basecompatibility.NewEffectiveVersionFromString(baseversion.DefaultKubeBinaryVersion, "", "")
	config.EnableProfiling, config.SkipOpenAPIInstallation = false, true
	s.listen(t, config)
	var providers []dynamiccertificates.CAContentProvider
	for _, name := range []string{"cluster", "proxy"} {
		provider, err := dynamiccertificates.NewDynamicCAContentFromFile(name, s.file(name+".crt"))
		if err != nil {
			t.Fatal(err)
		}
		if err := config.Authentication.ApplyClientCert(provider, config.SecureServing); err != nil {
			t.Fatal(err)
		}
		providers = append(providers, provider)
	}
	header := func(names ...string) headerrequest.StringSliceProvider { return headerrequest.StaticStringSlice(names) }
	authenticator, _, err := authenticatorfactory.DelegatingAuthenticatorConfig{
		Anonymous: &apiserver.AnonymousAuthConfig{Enabled: true}, ClientCertificateCAContentProvider: providers[0],
		RequestHeaderConfig: &authenticatorfactory.RequestHeaderConfig{
			CAContentProvider: providers[1], AllowedClientNames: header("front-proxy"), UsernameHeaders: header("X-Remote-User"),
			UIDHeaders: header("X-Remote-Uid"), GroupHeaders: header("X-Remote-Group"), ExtraHeaderPrefixes: header("X-Remote-Extra-"),
		},
	}.New()
	if err != nil {
		t.Fatal(err)
	}
	config.Authentication.Authenticator = authenticator
	config.Authorization.Authorizer = authorizer.AuthorizerFunc(permit)
	return config
}

// permit authorizes requests as the cluster's RBAC does.
func permit(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	audits := a.GetUser().GetName() == "kube-apiserver-audit" && a.GetPath() == auditPath && a.GetVerb() == "post"
	if audits || slices.Contains(a.GetUser().GetGroups(), "system:masters") {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "no rule permits it", nil
}

func (s *testServer) listen(t *testing.T, config *genericapiserver.Config) {
	t.Helper()
	pair, err := s.serving.Server("server", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	if err := pair.Write(s.folder, "server"); err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serving := genericoptions.NewSecureServingOptions().WithLoopback()
	serving.Listener, serving.BindPort = listener, listener.Addr().(*net.TCPAddr).Port
	serving.ServerCert.CertKey = genericoptions.CertKey{CertFile: s.file("server.crt"), KeyFile: s.file("server.key")}
	if err := serving.ApplyTo(&config.SecureServing, &config.LoopbackClientConfig); err != nil {
		t.Fatal(err)
	}
	s.url = "https://" + listener.Addr().String()
}

func (s *testServer) run(t *testing.T, config *genericapiserver.Config, endpoints *attributionwebhook.Endpoints) {
	t.Helper()
	server, err := config.Complete(nil).New("test", genericapiserver.NewEmptyDelegate())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var all sync.WaitGroup
	all.Go(func() { endpoints.Run(ctx) })
	all.Go(func() {
		if err := server.PrepareRun().RunWithContext(ctx); err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	t.Cleanup(func() {
		stop()
		all.Wait()
	})
}

// certificate returns a client certificate, signed by one of the server's authorities.
func certificate(t *testing.T, by *pki.Authority, user string, groups ...string) *tls.Certificate {
	t.Helper()
	pair, err := by.Client(user, groups...)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificate
}

// exchange is a request to the server.
type exchange struct {
	method, path string
	certificate  *tls.Certificate
	// pick sends the certificate only if the server lists its authority in the TLS handshake, as Go's clients do.
	pick    bool
	headers http.Header
	body    string
}

// send sends a request and returns the response's code, headers and body.
func (s *testServer) send(t *testing.T, e exchange) (int, http.Header, string) {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.serving.Certificate)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	switch {
	case e.certificate == nil:
	case e.pick:
		transport.TLSClientConfig.Certificates = []tls.Certificate{*e.certificate}
	default:
		transport.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return e.certificate, nil }
	}
	request, err := http.NewRequestWithContext(t.Context(), e.method, s.url+e.path, bytes.NewBufferString(e.body))
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range e.headers {
		request.Header[name] = values
	}
	response, err := (&http.Client{Transport: transport, Timeout: testkit.Timeout}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(body)
}
