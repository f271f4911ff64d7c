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

// withoutFiles takes back the certificate that development clusters give to the server.
var withoutFiles = []string{"--tls-cert-file=", "--tls-private-key-file=", "--serving-authority-secret=slipstream-ca"}

// TestOwnAuthority lets everything of an authority of the server's own change, most of it by its age, with no more rights than that
// takes.
func TestOwnAuthority(t *testing.T) {
	t.Parallel()
	s := newStage(t, devcluster.Options{Admission: true, Parts: []string{}},
		append(withoutFiles, "--serving-certificate-duration=30s", "--serving-authority-duration=90s")...)
	if err := s.UseDirectAdmission(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.askAggregator(t)
	s.askAfresh(t)
	s.askWebhook(t)
	events := s.watch(t)

	first := s.shown(t)
	s.eventually(t, "another certificate", func(ctx context.Context) error {
		found, err := s.handshake(ctx)
		if err == nil && found.SerialNumber.Cmp(first.SerialNumber) == 0 {
			err = errors.New("it is the same")
		}
		return err
	})
	s.undisturbed(t, "certificate renewed")

	second := s.becomesOfAnother(t, first.Issuer.CommonName)
	s.undisturbed(t, "authority replaced by age")

	s.kubectl(t, "delete", "secret", "slipstream-ca", "-n", devcluster.ServerNamespace)
	s.becomesOfAnother(t, second)
	s.undisturbed(t, "Secret deleted")

	s.kubectl(t, "delete", "secret", "slipstream-ca", "-n", devcluster.ServerNamespace)
	s.putAuthority(t, "by-hand")
	s.becomesOf(t, "by-hand")
	s.undisturbed(t, "Secret replaced by hand")
	s.arrives(t, events)
	s.overwriteBundle(t)
}

// becomesOfAnother waits until the certificate is of another authority than one, and returns the name of that.
func (s *stage) becomesOfAnother(t *testing.T, authority string) string {
	t.Helper()
	var name string
	s.eventually(t, "a certificate of another authority than "+authority, func(ctx context.Context) error {
		found, err := s.handshake(ctx)
		if err != nil {
			return err
		}
		if name = found.Issuer.CommonName; name == authority {
			return errors.New("it is the same")
		}
		return nil
	})
	return name
}

// putAuthority puts an authority into the Secret, as somebody would who has one.
func (s *stage) putAuthority(t *testing.T, name string) {
	t.Helper()
	authority, err := pki.NewAuthority(name)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := authority.Write(folder, "ca"); err != nil {
		t.Fatal(err)
	}
	s.kubectl(t, "create", "secret", "tls", "slipstream-ca", "-n", devcluster.ServerNamespace,
		"--cert="+filepath.Join(folder, "ca.crt"), "--key="+filepath.Join(folder, "ca.key"))
}

// askWebhook changes something all the time, about which kube-apiserver asks the server without the aggregator. Nobody
// notices when it does not get an answer, but it counts that.
func (s *stage) askWebhook(t *testing.T) {
	t.Helper()
	unanswered := -1
	s.ask(t, "direct webhook", 200*time.Millisecond, func(ctx context.Context) error {
		name := "configbutler.ai/asked=" + strconv.FormatInt(time.Now().UnixNano(), 10)
		if _, err := s.admin.Run(ctx, "annotate", "--overwrite", "namespace", "default", name); err != nil {
			return err
		}
		metrics, err := s.admin.Run(ctx, "get", "--raw", "/metrics")
		if err != nil {
			return err
		}
		before := unanswered
		unanswered = max(unanswered, 0)
		for line := range strings.Lines(metrics) {
			if strings.HasPrefix(line, `apiserver_admission_webhook_fail_open_count{name="attribution.configbutler.ai"`) {
				unanswered, err = strconv.Atoi(strings.Fields(line)[1])
			}
		}
		if err == nil && before >= 0 && unanswered > before {
			err = fmt.Errorf("%d reviews were not answered", unanswered-before)
		}
		return err
	})
}

// watch follows a kind through the aggregator.
func (s *stage) watch(t *testing.T) watch.Interface {
	t.Helper()
	client := s.objects.Resource(repositories).Namespace("default")
	list, err := client.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watcher, err := watchtools.NewRetryWatcherWithContext(t.Context(), list.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			t.Log("the watch begins")
			return client.Watch(ctx, options)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watcher.Stop)
	return watcher
}

// arrives makes an object, of which a watch must tell that began long ago.
func (s *stage) arrives(t *testing.T, events watch.Interface) {
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
			t.Errorf("the watch tells of %v", event)
		}
	case <-time.After(deadline):
		t.Error("the watch does not tell of a new object")
	}
}

// overwriteBundle replaces the bundle by one with which nobody trusts the server, and waits until that has been put right.
func (s *stage) overwriteBundle(t *testing.T) {
	t.Helper()
	authority, err := pki.NewAuthority("of nobody")
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
	s.eventually(t, "the bundle to be put right", func(ctx context.Context) error {
		_, err := s.handshake(ctx)
		return err
	})
	t.Logf("the bundle was put right after %v", time.Since(began).Round(time.Millisecond))
	s.eventually(t, "an answer", func(ctx context.Context) error {
		_, err := s.objects.Resource(repositories).Namespace("default").List(ctx, metav1.ListOptions{})
		return err
	})
	t.Logf("kube-apiserver trusted it after %v", time.Since(began).Round(time.Millisecond))
}

// TestReplicas has two servers go over to another authority, beside each other.
func TestReplicas(t *testing.T) {
	t.Parallel()
	s := newStage(t, devcluster.Options{Storage: devcluster.StorageEtcd3, Replicas: 2}, withoutFiles...)
	s.askAggregator(t)
	s.askAfresh(t)
	first := s.shown(t).Issuer.CommonName
	s.kubectl(t, "delete", "secret", "slipstream-ca", "-n", devcluster.ServerNamespace)
	// The balancer takes turns: both have changed when several in a row show the same.
	s.eventually(t, "certificates of another authority on both", func(ctx context.Context) error {
		for range 4 {
			found, err := s.handshake(ctx)
			if err != nil {
				return err
			}
			if found.Issuer.CommonName == first {
				return errors.New("one is of the authority that is gone")
			}
		}
		return nil
	})
	s.undisturbed(t, "Secret deleted with two replicas")
}
