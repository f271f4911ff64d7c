// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/devcluster/pki"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// withoutFiles removes the certificate files of development clusters from the server's flags.
var withoutFiles = []string{"--tls-cert-file=", "--tls-private-key-file=", "--serving-authority-secret=" + authoritySecret}

// TestOwnAuthority replaces certificate, authority and Secret of the server, most of them when they expire, with minimal
// permissions. Certificates are renewed long enough before they expire that a busy server is not late.
func TestOwnAuthority(t *testing.T) {
	t.Parallel()
	s := newTestCluster(t, devcluster.Options{Admission: true, Parts: []string{}},
		append(withoutFiles, "--serving-certificate-duration=60s", "--serving-authority-duration=180s")...)
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

	s.eventually(t, "the Secret to be deleted", s.deleteAuthority)
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
	made := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
		"metadata":   map[string]any{"name": authoritySecret},
		"stringData": map[string]any{"tls.crt": string(authority.Certificate), "tls.key": string(authority.Key)},
	}}
	s.eventually(t, "the Secret to be replaced", func(ctx context.Context) error {
		if err := s.deleteAuthority(ctx); err != nil {
			return err
		}
		_, err := s.objects.Resource(secrets).Namespace(devcluster.ServerNamespace).Create(ctx, made, metav1.CreateOptions{})
		return err
	})
}

// testWebhook continuously makes changes that kube-apiserver reviews with the server, without the aggregator. A review that fails does
// not fail the change. If kube-apiserver did not trust the server, the request has failed. Otherwise the review was cut off, because it
// took longer than two seconds on a busy machine: this says nothing about certificates, and the change is repeated.
func (s *testCluster) testWebhook(t *testing.T) {
	t.Helper()
	admin, err := s.Admin().Objects()
	if err != nil {
		t.Fatal(err)
	}
	var before reviews
	s.startClient(t, "direct webhook", 200*time.Millisecond, func(ctx context.Context) error {
		return wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			change := fmt.Sprintf(`{"metadata":{"annotations":{"configbutler.ai/reviewed":"%d"}}}`, time.Now().UnixNano())
			if err := admin.Patch(ctx, "", "namespace/default", change); err != nil {
				return false, err
			}
			now, err := s.countReviews(ctx, admin)
			if err != nil {
				return false, err
			}
			last := before
			before = now
			if now.distrusted > last.distrusted {
				return false, fmt.Errorf("kube-apiserver did not trust the server: %s", now.failure)
			}
			return now.answered > last.answered, nil
		})
	})
}

// reviews are the reviews of kube-apiserver until now.
type reviews struct {
	// answered is the number of reviews with a response.
	answered float64
	// distrusted is the number of messages about reviews that failed because of the server's certificate, failure the last of them.
	distrusted int
	failure    string
}

// countReviews reads the metrics and the log of kube-apiserver. Its metrics do not tell why a review failed.
func (s *testCluster) countReviews(ctx context.Context, admin *devcluster.Objects) (reviews, error) {
	var found reviews
	metrics, err := admin.Read(ctx, "/metrics")
	if err != nil {
		return found, err
	}
	all, err := mirrortest.ReviewMetric(metrics, "admission_duration_seconds_count")
	if err != nil {
		return found, err
	}
	failed, err := mirrortest.ReviewMetric(metrics, "fail_open_count")
	if err != nil {
		return found, err
	}
	found.answered = all - failed
	log, err := s.apiServerLog()
	for line := range strings.Lines(log) {
		if strings.Contains(line, "attribution.configbutler.ai") && strings.Contains(line, "x509:") {
			found.distrusted++
			found.failure = line
		}
	}
	return found, err
}

// watch watches a kind through the aggregator.
func (s *testCluster) watch(t *testing.T) watch.Interface {
	t.Helper()
	client := s.objects.Resource(repositories).Namespace("default")
	var version string
	s.eventually(t, "a list", func(ctx context.Context) error {
		list, err := client.List(ctx, metav1.ListOptions{})
		if err == nil {
			version = list.GetResourceVersion()
		}
		return err
	})
	watcher, err := watchtools.NewRetryWatcherWithContext(t.Context(), version, &cache.ListWatch{
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
	s.eventually(t, "an object to be created", func(ctx context.Context) error {
		_, err := s.objects.Resource(repositories).Namespace("default").Create(ctx, made, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // A former request has created it.
			return nil
		}
		return err
	})
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
	object := unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"caBundle": authority.Certificate}}}
	patch, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	s.eventually(t, "the bundle to be overwritten", func(ctx context.Context) error {
		_, err := s.objects.Resource(apiServices).Patch(ctx, devcluster.APIServiceName, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
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
	s.eventually(t, "the Secret to be deleted", s.deleteAuthority)
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
