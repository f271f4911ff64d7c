// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/kubernetes"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// filesOfThePlugin starts a kube-apiserver with the files that `kubectl slipstream webhook-config` writes and the flags that it prints. The
// server must name the users of changes that are made there, which only these files report.
func filesOfThePlugin(t *testing.T, s *testCluster) {
	m := s.newMirror(t, "plugin-files", "configmaps")
	dir := t.TempDir()
	flags := s.webhookConfig(t, dir)
	s.trust(t, filepath.Join(dir, "audit-ca.crt"))
	url, err := s.StartAPIServer(t.Context(), flags...)
	if err != nil {
		t.Fatal(err)
	}
	config, err := s.alice.kubectl.User.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.Host = url
	alice := &person{name: s.alice.name}
	if alice.client, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	changes := 0
	// Changes wait for facts only after the first fact.
	mirrortest.Eventually(t, "the files report alice", func(ctx context.Context) error {
		if err := m.set(ctx, alice, "note", fmt.Sprint(changes+1)); err != nil {
			return err
		}
		changes++
		if c := m.changesOf(t, "v1/configmaps", "note", changes)[changes-1]; c.Author != alice.name || c.Signal != "audit" {
			return errors.New(c.String())
		}
		return nil
	})
}

// webhookConfig writes the files to a folder, and returns the flags of kube-apiserver that the plugin prints.
func (s *testCluster) webhookConfig(t *testing.T, dir string) (flags []string) {
	t.Helper()
	plugin := clustertest.Plugin(t, s.Admin())
	address := strings.TrimPrefix(s.Env(devcluster.EnvServerURL), "https://")
	out, err := plugin.Run(t.Context(), "webhook-config", "--dir", dir, "--node-dir", dir, "--address", address)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out) {
		if flag := strings.TrimSpace(line); strings.HasPrefix(flag, "--audit-") {
			flags = append(flags, flag)
		}
	}
	if len(flags) < 3 {
		t.Fatalf("the plugin prints no flags:\n%s", out)
	}
	return flags
}

// trust makes the server accept audit events from clients of another authority as well.
func (s *testCluster) trust(t *testing.T, authority string) {
	t.Helper()
	certificate, err := os.ReadFile(authority)
	if err != nil {
		t.Fatal(err)
	}
	trusted, err := os.OpenFile(filepath.Join(s.folder(), "pki", "audit-ca.crt"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = trusted.Write(certificate)
	if err := errors.Join(err, trusted.Close()); err != nil {
		t.Fatal(err)
	}
	// The server reads the file again by itself, but some time later.
	if err := s.StopServer(t.Context(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := s.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// folder is that of the cluster.
func (s *testCluster) folder() string {
	return filepath.Dir(filepath.Dir(s.Env(devcluster.EnvKubeconfig)))
}
