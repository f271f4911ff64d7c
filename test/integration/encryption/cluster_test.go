// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package encryption tests on real servers that all rows are encrypted, with each backend and each source of keys, and that all rows are
// encrypted again after a key rotation.
package encryption

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// deadline is longer than any wait of these tests on a busy machine.
const deadline = 5 * time.Minute

// marker is a text in a Secret and in an annotation of a GitRepoConfig that must not be stored unencrypted.
const marker = "correct-horse-battery-staple"

// testCluster is a cluster with a server, and clients of the administrator.
type testCluster struct {
	*devcluster.Cluster
	objects *mirrortest.Objects
	admin   devcluster.Kubectl
	direct  *http.Client
}

func newTestCluster(t *testing.T, options devcluster.Options) *testCluster {
	t.Helper()
	options.Server = true
	cluster := clustertest.Start(t, options)
	config, err := cluster.Admin().RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	// The server's certificate has another authority than the aggregator's.
	config.TLSClientConfig.Insecure, config.TLSClientConfig.CAData, config.TLSClientConfig.CAFile = true, nil, ""
	direct, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	objects := mirrortest.ObjectsOf(t, cluster.Admin())
	return &testCluster{Cluster: cluster, objects: objects, admin: cluster.Kubectl(cluster.Admin()), direct: direct}
}

func (s *testCluster) apply(t *testing.T, manifests string) {
	t.Helper()
	s.objects.Apply(t, manifests)
}

func (s *testCluster) kubectl(t *testing.T, arguments ...string) string {
	t.Helper()
	out, err := s.admin.Run(t.Context(), arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// get sends a request to the server directly.
func (s *testCluster) get(ctx context.Context, path string) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Env(devcluster.EnvServerURL)+path, nil)
	if err != nil {
		return 0, "", err
	}
	response, err := s.direct.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

// metric returns a metric of one of the two stores.
func (s *testCluster) metric(ctx context.Context, name, store string) (float64, error) {
	_, body, err := s.get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	found := regexp.MustCompile(`(?m)^slipstream_` + name + `\{store="` + store + `"\} (\S+)$`).FindStringSubmatch(body)
	if found == nil {
		return 0, fmt.Errorf("no metric %s of %s", name, store)
	}
	return strconv.ParseFloat(found[1], 64)
}

// mirrorASecret creates objects and outbox rows with the marker: a repository whose remote rejects pushes, and a Secret with a
// pending change.
func (s *testCluster) mirrorASecret(t *testing.T) {
	t.Helper()
	s.apply(t, fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: configbutler.ai/v1alpha1
kind: GitRepoConfig
metadata: {name: main, namespace: shop, annotations: {note: %s}}
spec: {repoUrl: %s/shop.git, allowedBranches: [main]}
---
apiVersion: configbutler.ai/v1alpha1
kind: GitDestination
metadata: {name: main, namespace: shop}
spec: {repoRef: {name: main}, branch: main, baseFolder: shop, secrets: AsIs}
---
apiVersion: configbutler.ai/v1alpha1
kind: WatchRule
metadata: {name: main, namespace: shop}
spec: {destinationRef: {name: main}, rules: [{name: all, resources: [secrets, configmaps]}]}
`, marker, s.Env(devcluster.EnvGitURL)))
	s.objects.Ready(t, "shop", "watchrule/main", "gitdestination/main")
	s.refusePushes(t)
	s.apply(t, fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata: {name: waiting, namespace: shop}
stringData: {password: %s}
`, marker))
	testkit.EventuallyWithin(t, deadline, "the change to be pending", func(ctx context.Context) error {
		waiting, err := s.objects.Try.Field(ctx, "shop", "gds/main", "{.status.pendingChanges}")
		if err == nil && (waiting == "" || waiting == "0") {
			err = errors.New("no pending change")
		}
		return err
	})
}

// hook returns the path of the remote's pre-receive hook.
func (s *testCluster) hook() string {
	return filepath.Join(s.Env(devcluster.EnvGitRoot), "shop.git", "hooks", "pre-receive")
}

func (s *testCluster) refusePushes(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(s.hook(), []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}

// acceptPushes removes the hook and waits until the Secret is in the repository, which requires its decryption.
func (s *testCluster) acceptPushes(t *testing.T) {
	t.Helper()
	if err := os.Remove(s.hook()); err != nil {
		t.Fatal(err)
	}
	testkit.EventuallyWithin(t, deadline, "the Secret to be pushed", func(ctx context.Context) error {
		command := exec.CommandContext(ctx, "git", "-C", filepath.Dir(filepath.Dir(s.hook())), "show",
			"main:shop/core/v1/secrets/shop/waiting.yaml")
		out, err := command.CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte(base64.StdEncoding.EncodeToString([]byte(marker)))) {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}
