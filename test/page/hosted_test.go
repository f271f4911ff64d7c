// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/test/devcluster/pki"
	"github.com/configbutler/slipstream/test/devcluster/programs"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
)

const (
	// hostedName is the name of the hosted page, which the browser resolves to this machine.
	hostedName = "slipstream.test"
	// buildLimit is longer than building oauth2-proxy takes on a busy machine.
	buildLimit = 15 * time.Minute
	// renewal is how old a login at the proxy is when the proxy renews its token.
	renewal = 2 * time.Second
)

// hosted is a page for all users, behind oauth2-proxy, which logs them in at an issuer that the API server trusts.
type hosted struct {
	cluster *testCluster
	// origin is the address of the page in the browser, and address where the page itself listens, also after it was stopped.
	origin, address string
	folder          string
	stop            func()
}

// oidcFlags are the flags of kube-apiserver that have it trust an issuer. Users have the same names as those with certificates.
func oidcFlags(of *issuer, ca string) []string {
	return []string{
		"--oidc-issuer-url=" + of.server.URL, "--oidc-client-id=" + clientID, "--oidc-ca-file=" + ca,
		"--oidc-username-claim=preferred_username", "--oidc-username-prefix=-",
	}
}

// startHosted starts the page and its proxy, until the test ends.
func startHosted(t *testing.T, s *testCluster) *hosted {
	t.Helper()
	h := &hosted{cluster: s, folder: t.TempDir()}
	root, err := programs.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	program := buildProxy(t, root) // Before ports are chosen, as it takes minutes the first time.
	authority, err := pki.NewAuthority("page")
	if err != nil {
		t.Fatal(err)
	}
	if err := authority.Write(h.folder, "ca"); err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Server("page", hostedName, "127.0.0.1")
	if err == nil {
		err = pair.Write(h.folder, "page")
	}
	if err != nil {
		t.Fatal(err)
	}
	free := testkit.FreeAddresses(t, 2)
	proxy := free[0]
	h.address = free[1]
	_, port, err := net.SplitHostPort(proxy)
	if err != nil {
		t.Fatal(err)
	}
	h.origin = "https://" + net.JoinHostPort(hostedName, port)
	h.start(t)
	t.Cleanup(func() { h.stop() })
	h.startProxy(t, root, program, proxy)
	return h
}

// start starts the page. It has the kubeconfig of a user without permissions, whose credentials it must not use.
func (h *hosted) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	command := clustertest.Plugin(t, h.cluster.person(t, nora).Kubectl.User).Command(
		ctx, "dashboard", "serve", "--url="+h.origin, "--listen="+h.address,
		"--tls-cert-file="+filepath.Join(h.folder, "page.crt"), "--tls-private-key-file="+filepath.Join(h.folder, "page.key"),
	)
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	h.stop = func() {
		cancel()
		_ = command.Wait() // It was killed.
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if want := "Serving " + h.origin + " on " + h.address; strings.TrimSpace(line) != want {
		t.Fatalf("printed %q, want %q: %v", line, want, err)
	}
}

// buildProxy returns the path of oauth2-proxy.
func buildProxy(t *testing.T, root string) (program string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), buildLimit)
	defer cancel()
	program, err := programs.OAuth2Proxy.Build(ctx, root)
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// startProxy starts oauth2-proxy with the arguments of artifacts/examples/page-proxy.yaml, and the addresses of this test.
func (h *hosted) startProxy(t *testing.T, root, program, address string) {
	t.Helper()
	h.cluster.issuer.certificate(t, filepath.Join(h.folder, "issuer.crt"))
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	command := exec.CommandContext(ctx, program, append(
		example(t, root), "--request-logging=false", "--insecure-oidc-allow-unverified-email",
		"--oidc-issuer-url="+h.cluster.issuer.server.URL, "--redirect-url="+h.origin+"/oauth2/callback", "--upstream=https://"+h.address,
		"--client-id="+clientID, "--cookie-refresh="+renewal.String(), "--http-address=", "--https-address="+address,
		"--tls-cert-file="+filepath.Join(h.folder, "page.crt"), "--tls-key-file="+filepath.Join(h.folder, "page.key"),
	)...)
	command.Env = append(
		os.Environ(), "OAUTH2_PROXY_CLIENT_SECRET=secret", "OAUTH2_PROXY_COOKIE_SECRET="+strings.Repeat("0123", 8), "SSL_CERT_DIR="+h.folder,
	)
	var log strings.Builder
	command.Stdout, command.Stderr = &log, &log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = command.Wait() // It was killed.
		if t.Failed() {
			t.Logf("oauth2-proxy:\n%s", log.String())
		}
	})
	testkit.Eventually(t, "oauth2-proxy", func() error {
		connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err == nil {
			err = connection.Close()
		}
		return err
	})
}

// example returns the arguments of oauth2-proxy in the example, without the addresses, which can be given only once.
func example(t *testing.T, root string) (arguments []string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "artifacts", "examples", "page-proxy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(content), "\n---\n")
	var deployment appsv1.Deployment
	if err := yaml.UnmarshalStrict([]byte(first), &deployment); err != nil {
		t.Fatal(err)
	}
	for _, argument := range deployment.Spec.Template.Spec.Containers[0].Args {
		if flag, _, _ := strings.Cut(argument, "="); flag != "--upstream" {
			arguments = append(arguments, argument)
		}
	}
	return arguments
}

// hostedStep does what a scenario asks for, and returns the address of the page, or how many tokens of users were renewed.
func (s *testCluster) hostedStep(t *testing.T, action string) (any, error) {
	t.Helper()
	if s.hosted == nil {
		s.hosted = startHosted(s.root, s)
	}
	switch action {
	case "address":
		return s.hosted.origin, nil
	case "renewals":
		return s.issuer.renewals(), nil
	case "stop":
		s.hosted.stop()
		return nil, nil
	case "start":
		s.hosted.start(s.root)
		return nil, nil
	}
	return nil, fmt.Errorf("unknown action %s", action)
}
