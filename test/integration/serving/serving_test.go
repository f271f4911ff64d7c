// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/devcluster/pki"
)

// withoutFiles removes the certificate files of development clusters from the server's flags.
var withoutFiles = []string{"--tls-cert-file=", "--tls-private-key-file=", "--serving-authority-secret=slipstream-ca"}

// TestOwnAuthority replaces certificate, authority and Secret of the server, most of them when they expire, with minimal
// permissions.
func TestOwnAuthority(t *testing.T) {
	t.Parallel()
	s := newTestCluster(t, devcluster.Options{Admission: true, Parts: []string{}},
		append(withoutFiles, "--serving-certificate-duration=30s", "--serving-authority-duration=90s")...)
	if err := s.UseDirectAdmission(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.testAggregator(t)
	s.testNewConnections(t)
	s.testWebhook(t)
	events := s.watch(t)

	first := s.certificate(t)
	s.eventually(t, "a renewed certificate", func(ctx context.Context) error {
		found, err := s.handshake(ctx)
		if err == nil && found.SerialNumber.Cmp(first.SerialNumber) == 0 {
			err = errors.New("certificate is unchanged")
		}
		return err
	})
	s.expectUninterrupted(t, "certificate renewed")

	second := s.waitForOtherAuthority(t, first.Issuer.CommonName)
	s.expectUninterrupted(t, "authority replaced by age")

	s.kubectl(t, "delete", "secret", "slipstream-ca", "-n", devcluster.ServerNamespace)
	s.waitForOtherAuthority(t, second)
	s.expectUninterrupted(t, "Secret deleted")

	s.putAuthority(t, "by-hand")
	s.waitForAuthority(t, "by-hand")
	s.expectUninterrupted(t, "Secret replaced by hand")
	s.expectEvent(t, events)
	s.overwriteBundle(t)
}

// waitForOtherAuthority waits for a certificate with another authority, and returns the name of the authority.
func (s *testCluster) waitForOtherAuthority(t *testing.T, authority string) string {
	t.Helper()
	var name string
	s.eventually(t, "a certificate of another authority than "+authority, func(ctx context.Context) error {
		found, err := s.handshake(ctx)
		if err != nil {
			return err
		}
		if name = found.Issuer.CommonName; name == authority {
			return errors.New("authority is unchanged")
		}
		return nil
	})
	return name
}

// putAuthority replaces the Secret by one with another authority, as an administrator might. The server may create it again in between.
func (s *testCluster) putAuthority(t *testing.T, name string) {
	t.Helper()
	authority, err := pki.NewAuthority(name)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := authority.Write(folder, "ca"); err != nil {
		t.Fatal(err)
	}
	s.eventually(t, "the Secret to be replaced", func(ctx context.Context) error {
		if _, err := s.admin.Run(ctx, "delete", "secret", "slipstream-ca", "-n", devcluster.ServerNamespace, "--ignore-not-found"); err != nil {
			return err
		}
		_, err := s.admin.Run(ctx, "create", "secret", "tls", "slipstream-ca", "-n", devcluster.ServerNamespace,
			"--cert="+filepath.Join(folder, "ca.crt"), "--key="+filepath.Join(folder, "ca.key"))
		return err
	})
}

// testWebhook continuously makes changes that kube-apiserver reviews with the server, without the aggregator. Failed reviews do not
// fail the changes, but are counted.
func (s *testCluster) testWebhook(t *testing.T) {
	t.Helper()
	failed := -1
	s.startClient(t, "direct webhook", 200*time.Millisecond, func(ctx context.Context) error {
		name := "configbutler.ai/reviewed=" + strconv.FormatInt(time.Now().UnixNano(), 10)
		if _, err := s.admin.Run(ctx, "annotate", "--overwrite", "namespace", "default", name); err != nil {
			return err
		}
		metrics, err := s.admin.Run(ctx, "get", "--raw", "/metrics")
		if err != nil {
			return err
		}
		before := failed
		failed = max(failed, 0)
		for line := range strings.Lines(metrics) {
			if strings.HasPrefix(line, `apiserver_admission_webhook_fail_open_count{name="attribution.configbutler.ai"`) {
				failed, err = strconv.Atoi(strings.Fields(line)[1])
			}
		}
		if err == nil && before >= 0 && failed > before {
			err = fmt.Errorf("%d reviews failed", failed-before)
		}
		return err
	})
}

// watch watches a kind through the aggregator.
func (s *testCluster) watch(t *testing.T) watch.Interface {
	t.Helper()
	client := s.objects.Resource(repositories).Namespace("default")
	list, err := client.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watcher, err := watchtools.NewRetryWatcherWithContext(t.Context(), list.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			t.Log("watch started")
			return client.Watch(ctx, options)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watcher.Stop)
	return watcher
}

// expectEvent creates an object, whose event must be sent by a watch that is already open.
func (s *testCluster) expectEvent(t *testing.T, events watch.Interface) {
	t.Helper()
	made := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "configbutler.ai/v1alpha1", "kind": "GitRepoConfig",
		"metadata": map[string]any{"name": "late", "namespace": "default"},
		"spec":     map[string]any{"repoUrl": "https://git.example.com/late.git", "allowedBranches": []any{"main"}},
	}}
	if _, err := s.objects.Resource(repositories).Namespace("default").Create(t.Context(), made, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case event := <-events.ResultChan():
		if event.Type != watch.Added {
			t.Errorf("watch sent %v", event)
		}
	case <-time.After(deadline):
		t.Error("watch sent no event of a new object")
	}
}

// overwriteBundle replaces the bundle with an unrelated authority, and waits until the server has corrected it.
func (s *testCluster) overwriteBundle(t *testing.T) {
	t.Helper()
	authority, err := pki.NewAuthority("unrelated")
	if err != nil {
		t.Fatal(err)
	}
	patch, err := os.CreateTemp(t.TempDir(), "patch")
	if err != nil {
		t.Fatal(err)
	}
	object := unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"caBundle": authority.Certificate}}}
	content, err := object.MarshalJSON()
	if err == nil {
		_, err = patch.Write(content)
	}
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	s.kubectl(t, "patch", "apiservice", devcluster.APIServiceName, "--type=merge", "--patch-file="+patch.Name())
	s.eventually(t, "the bundle to be corrected", func(ctx context.Context) error {
		_, err := s.handshake(ctx)
		return err
	})
	t.Logf("bundle was corrected after %v", time.Since(began).Round(time.Millisecond))
	s.eventually(t, "a response", func(ctx context.Context) error {
		_, err := s.objects.Resource(repositories).Namespace("default").List(ctx, metav1.ListOptions{})
		return err
	})
	t.Logf("kube-apiserver trusted the server after %v", time.Since(began).Round(time.Millisecond))
}

// TestReplicas replaces the authority of two servers.
func TestReplicas(t *testing.T) {
	t.Parallel()
	s := newTestCluster(t, devcluster.Options{Storage: devcluster.StorageEtcd3, Replicas: 2}, withoutFiles...)
	s.testAggregator(t)
	s.testNewConnections(t)
	first := s.certificate(t).Issuer.CommonName
	s.kubectl(t, "delete", "secret", "slipstream-ca", "-n", devcluster.ServerNamespace)
	// The balancer alternates between the servers, so several consecutive handshakes reach both.
	s.eventually(t, "certificates of another authority on both", func(ctx context.Context) error {
		for range 4 {
			found, err := s.handshake(ctx)
			if err != nil {
				return err
			}
			if found.Issuer.CommonName == first {
				return errors.New("one certificate has the deleted authority")
			}
		}
		return nil
	})
	s.expectUninterrupted(t, "Secret deleted with two replicas")
}
