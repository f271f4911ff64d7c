// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/notifytest"
	"github.com/configbutler/slipstream/test/testkit/people"
	"github.com/configbutler/slipstream/test/testkit/receivertest"
)

// Namespaces of the test. All but the team's and the targets are mirrored, each to a repository of its own.
const (
	source    = "shop"
	team      = "team"
	automatic = "automatic"
	manual    = "manual"
)

// mirrored are the namespaces in which users change objects of all kinds.
var mirrored = []string{"alpha", "beta"}

// policy makes the server react within seconds, and keep the whole history.
const policy = `
apiVersion: configbutler.ai/v1alpha1
kind: SyncPolicy
metadata: {name: default}
spec:
  batchWindow: 1s
  maxSyncsPerMinute: 10000
  retry: {maxAttempts: 20, backoff: 1s, maxBackoff: 10s}
  changes: {maxTotal: 10000000, maxPerObject: 1000000}
`

// workloads are the manifests of the source. No Pods run, since they would not change what is tested.
const workloads = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop}, data: {value: first}}
---
{apiVersion: v1, kind: Secret, metadata: {name: setup, namespace: shop}, stringData: {value: first}}
---
` + workload

// workload is a Deployment of the source: its name.
const workload = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: shop}
spec:
  replicas: 0
  revisionHistoryLimit: 1
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      containers:
      - name: main
        image: shop/main
        env: [{name: VALUE, value: first}]
        envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: setup}}]
---
`

// followers are a catalog of the source, and two environments of it.
const followers = `
apiVersion: configbutler.ai/v1alpha1
kind: AppCatalog
metadata: {name: shop, namespace: team}
spec: {sourceNamespace: shop, secrets: Shared, workloads: [{kind: Deployment, name: api}, {kind: Deployment, name: worker}]}
---
apiVersion: configbutler.ai/v1alpha1
kind: Environment
metadata: {name: automatic, namespace: team}
spec: {targetNamespace: automatic, catalogRef: {name: shop}, autoSync: true}
---
apiVersion: configbutler.ai/v1alpha1
kind: Environment
metadata: {name: manual, namespace: team}
spec: {targetNamespace: manual, catalogRef: {name: shop}}
`

// disk is a disk for the server's stores.
type disk struct {
	// folder is where the server sees it, inside where this process does.
	folder, inside string
	// enter is the start of a command that sees it.
	enter string
}

// soak is a cluster with all kinds of work, and everything between the server and its surroundings that can fail.
type soak struct {
	*mirrortest.AdminCluster
	mirrors []*mirrortest.Mirror
	// api and remote are between the server and kube-apiserver, and the Git server.
	api, remote *gateway
	// disk is nil if none could be mounted.
	disk *disk
	// receiver is that of the pipeline, inbox that of the NotificationSink.
	receiver *receivertest.Receiver
	inbox    *notifytest.Receiver
	admin    *people.Person
	// dave requests syncs, sam changes the source, writers change objects in the mirrored namespaces.
	dave, sam *people.Person
	writers   []*people.Person
	journal   *journal
	// certificate is the serving certificate that was written last, nil if it is the first.
	certificate []byte
}

// newSoak starts a cluster and everything that follows it.
func newSoak(t *testing.T) *soak {
	t.Helper()
	s := &soak{disk: newDisk(t), journal: newJournal()}
	s.start(t)
	s.admin = people.Admin(t, s.Cluster)
	s.remote = newGateway(t, s.Env(devcluster.EnvGitURL), nil, http.DefaultTransport)
	var rights strings.Builder
	users := map[string]*people.Person{}
	for _, name := range []string{"ann", "bob", "cem", "dave", "eve", "sam"} {
		rights.WriteString(people.Everywhere("edit", name) + people.Everywhere("slipstream-admin", name))
		users[name] = people.New(t, s.Cluster, name)
	}
	s.dave, s.sam = users["dave"], users["sam"]
	s.writers = []*people.Person{users["ann"], users["bob"], users["cem"]}
	s.Apply(t, rights.String()+policy)
	for _, namespace := range append([]string{source}, mirrored...) {
		m := s.NewMirrorTo(t, namespace, mirrortest.Remote{
			URL:    s.remote.URL + "/" + namespace + ".git",
			Folder: filepath.Join(s.Env(devcluster.EnvGitRoot), namespace+".git"),
		}, "granularity: PerChange")
		m.Watch(t, "all", "configmaps", "secrets", "deployments.apps")
		s.mirrors = append(s.mirrors, m)
	}
	for _, namespace := range []string{team, automatic, manual} {
		s.CreateNamespace(t, namespace)
	}
	s.Apply(t, fmt.Sprintf(workloads, "api")+fmt.Sprintf(workload, "worker"))
	s.dave.Apply(t, followers)
	s.follow(t, users["eve"])
	for _, namespace := range mirrored {
		s.ConfigMap(t, namespace, "first", "value: first") // A branch exists from its first file on.
	}
	return s
}

// start starts the cluster. The server connects to kube-apiserver through a gateway, and has its stores on the disk.
func (s *soak) start(t *testing.T) {
	t.Helper()
	server := clustertest.Program(t, "cmd/slipstream")
	folder := t.TempDir()
	program, arguments := filepath.Join(folder, "slipstream"), filepath.Join(folder, "arguments")
	enter, stores := "", ""
	if s.disk != nil {
		enter, stores = s.disk.enter, "--data-dir="+s.disk.folder
	}
	write(t, program, fmt.Sprintf("#!/bin/sh\nexec %s %s \"$@\" %s $(cat %s)\n", enter, server, stores, arguments))
	write(t, arguments, "")
	s.AdminCluster = mirrortest.NewAdminCluster(t, devcluster.Options{
		ServerProgram: program, Audit: true, Admission: true,
		// The collector's default makes the memory follow what is in use.
		ServerEnv: []string{"GOGC=100"},
		// Without a watch cache, watches expire with etcd's history.
		APIServerArgs: []string{"--watch-cache-sizes=configmaps#0,deployments.apps#0"},
	})
	// The kubeconfig of the server exists since its first start.
	gateway, kubeconfig := newAPIGateway(t, s.Cluster)
	s.api = gateway
	write(t, arguments, "--kubeconfig="+kubeconfig)
	if err := s.StopServer(t.Context(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := s.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// follow has a user create the pipeline and the NotificationSink with their receivers.
func (s *soak) follow(t *testing.T, by *people.Person) {
	t.Helper()
	s.receiver, s.inbox = receivertest.New(t, v1alpha1.PipelineFormatCloudEvents), notifytest.Webhook(t)
	by.Apply(t, fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: SyncPipeline
metadata: {name: soak}
spec:
  debounce: 0s
  batch: {maxWait: 1s}
  customResourceDefinitions: {enabled: false}
  instances: {resources: [configmaps]}
  sinks: [{name: index, retry: {backoff: 1s, maxBackoff: 5s}, http: {url: '%s', format: CloudEvents, timeout: 5s}}]
---
apiVersion: configbutler.ai/v1alpha1
kind: NotificationSink
metadata: {name: soak, namespace: %s}
spec:
  webhook: {url: '%s', caBundle: %s}
  events: [Change, DestinationFailing]
  digestWindow: 1s
  maxPerMinute: 60
`, s.receiver.URL, mirrored[0], s.inbox.URL, base64.StdEncoding.EncodeToString(s.inbox.CABundle())))
	s.Ready(t, "", "pipe/soak")
	s.Ready(t, mirrored[0], "sink/soak")
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
		t.Fatal(err)
	}
}
