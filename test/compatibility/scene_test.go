// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package compatibility

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/notifytest"
	"github.com/configbutler/slipstream/test/testkit/receivertest"
)

// Namespaces of the test. The first three have nothing to do when the server is replaced; in the last one, work waits.
const (
	kept       = "kept"
	copied     = "kept-copy"
	branched   = "kept-branch"
	unfinished = "unfinished"
)

// scene is a cluster with objects of all kinds. Its server can be replaced.
type scene struct {
	*mirrortest.AdminCluster
	// program is a script that starts the server.
	program string
	// expires is true if a watch from before the replacement may expire.
	expires bool
	// quiet is a mirror whose changes are all pushed, pending one with changes that wait for its Git server.
	quiet, pending *mirrortest.Mirror
	// git is the connection to the Git server of pending.
	git *mirrortest.Wire
	// received is the receiver of the pipeline whose changes are sent, refused that of the one whose changes wait.
	received, refused *receivertest.Receiver
	// inbox is the receiver of the NotificationSink whose notifications wait.
	inbox *notifytest.Receiver
	// commits are the numbers of commits of quiet and pending before the server is replaced.
	commits [2]int
}

// newScene starts a cluster with a server.
func newScene(t *testing.T, server string, options devcluster.Options) *scene {
	t.Helper()
	s := &scene{program: filepath.Join(t.TempDir(), "slipstream"), expires: options.Storage == devcluster.StorageEtcd3}
	s.use(t, server)
	options.ServerProgram, options.Audit = s.program, true
	options.Denials = "the earlier version may send requests that this one does not"
	s.AdminCluster = mirrortest.NewAdminCluster(t, options)
	return s
}

// use has the next start of the server run a program.
func (s *scene) use(t *testing.T, server string) {
	t.Helper()
	if err := os.WriteFile(s.program, fmt.Appendf(nil, "#!/bin/sh\nexec %s \"$@\"\n", server), 0o700); err != nil {
		t.Fatal(err)
	}
}

// replace ends the server and starts another one on the same store.
func (s *scene) replace(t *testing.T, server string) {
	t.Helper()
	stop(t, s.AdminCluster)
	s.use(t, server)
	start(t, s.AdminCluster)
}

// source has the objects that are mirrored and copied. The workload is ready without a Pod.
const source = `
{apiVersion: v1, kind: Namespace, metadata: {name: kept-copy}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: kept-branch}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: kept}, data: {BANNER: spring}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: removed, namespace: kept}, data: {a: b}}
---
{apiVersion: v1, kind: Secret, metadata: {name: password, namespace: kept}, stringData: {PASSWORD: correct horse}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: report, namespace: kept}
spec:
  schedule: "0 0 1 1 *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
          - name: report
            image: registry.example.com/report:1
            envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: password}}]
`

// written has objects of the kinds that users write: the authority of the webhook in base64, the URLs of the receivers of both pipelines,
// and that of the webhook.
const written = `
apiVersion: configbutler.ai/v1alpha1
kind: SyncPolicy
metadata: {name: default, labels: {team: shop}, annotations: {example.com/note: kept}}
spec:
  batchWindow: 1s
  maxSyncsPerMinute: 1000
  retry: {maxAttempts: 7, backoff: 1s, maxBackoff: 5s}
  retention: {days: 40, keepPerSubject: 11, maxPerSubject: 900}
  changes: {ttl: 2000h, maxTotal: 90000, maxPerObject: 900}
  trackingMarks: [example.com/tracked]
---
apiVersion: configbutler.ai/v1alpha1
kind: WatchRule
metadata: {name: some, namespace: kept}
spec:
  destinationRef: {name: main}
  objectSelector: {matchExpressions: [{key: tier, operator: In, values: [web]}]}
  rules:
  - {name: services, operations: [CREATE, UPDATE], apiGroups: [""], apiVersions: [v1], resources: [services]}
---
apiVersion: configbutler.ai/v1alpha1
kind: ClusterWatchRule
metadata: {name: kept}
spec:
  destinationRef: {namespace: kept, name: main}
  rules:
  - {name: classes, scope: Cluster, resources: [storageclasses.storage.k8s.io]}
  - {name: jobs, scope: Namespaced, resources: [cronjobs.batch], namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kept-copy}}}
---
apiVersion: configbutler.ai/v1alpha1
kind: AppCatalog
metadata: {name: shop, namespace: kept}
spec:
  sourceNamespace: kept
  workloads: [{kind: CronJob, name: report}]
  secrets: Shared
  historyLimit: 7
  accessPolicy: {namespacedRules: {mode: FromSelector, namespaceSelector: {matchLabels: {team: shop}}}}
  ignore: [{target: {kind: CronJob}, fields: [/spec/suspend]}]
  patches:
  - {target: {kind: CronJob, name: report}, patch: "{spec: {successfulJobsHistoryLimit: 1}}"}
---
apiVersion: configbutler.ai/v1alpha1
kind: Environment
metadata: {name: copy, namespace: kept}
spec:
  catalogRef: {name: shop}
  targetNamespace: kept-copy
  historyLimit: 8
  deletionPolicy: Orphan
  adapt: {cronJobs: AsSource, replicas: AsSource, loadBalancers: AsSource}
  include: [{apiVersion: v1, kind: ConfigMap, name: settings}]
  syncWindows: [{name: always, kind: Allow, schedule: "0 0 * * *", duration: 24h, timeZone: Europe/Berlin}]
  patches:
  - {target: {kind: CronJob}, type: JSON6902, patch: '[{op: add, path: /spec/suspend, value: true}]'}
---
apiVersion: configbutler.ai/v1alpha1
kind: Environment
metadata: {name: branch, namespace: kept}
spec:
  catalogRef: {name: shop}
  targetNamespace: kept-branch
  type: Branch
  branchWorkloads: [{kind: CronJob, name: report}]
---
apiVersion: configbutler.ai/v1alpha1
kind: NotificationSink
metadata: {name: record, namespace: kept}
spec:
  event: {}
  events: [Failed]
  minSeverity: Error
  digestWindow: 1m
  maxPerMinute: 3
  template: {title: "{{.Headline}}"}
---
apiVersion: configbutler.ai/v1alpha1
kind: NotificationSink
metadata: {name: webhook, namespace: unfinished}
spec:
  webhook: {url: '%[4]s', caBundle: %[1]s}
  events: [Change]
  digestWindow: 1s
  maxPerMinute: 60
---
apiVersion: configbutler.ai/v1alpha1
kind: SyncPipeline
metadata: {name: kept}
spec:
  customResourceDefinitions: {enabled: false}
  instances: {resources: [cronjobs.batch]}
  debounce: 0s
  batch: {maxItems: 9, maxWait: 1s}
  resyncInterval: 12h
  sinks: [{name: index, retry: {backoff: 1s, maxBackoff: 5s}, http: {url: '%[2]s', format: CloudEvents, timeout: 7s}}]
---
apiVersion: configbutler.ai/v1alpha1
kind: SyncPipeline
metadata: {name: unfinished}
spec:
  customResourceDefinitions: {enabled: false}
  instances: {resources: [services]}
  debounce: 0s
  batch: {maxWait: 1s}
  sinks: [{name: index, retry: {backoff: 1s, maxBackoff: 1s}, http: {url: '%[3]s', format: CloudEvents}}]
`

// fill creates objects of the kinds that users write, and makes changes that are mirrored, cataloged, copied and sent.
func (s *scene) fill(t *testing.T) {
	t.Helper()
	s.quiet = s.NewMirror(t, kept, "granularity: PerChange", "prune: Always", "secrets: Encrypt",
		`ignore: [{target: {kind: Service}, fields: [/metadata/labels/noise]}]`, "accessPolicy: {allowClusterRules: true}")
	s.Patch(t, kept, "gitrepoconfig/main", `{"spec": {"push": {"interval": "1s", "maxCommits": 20},
		"webURLTemplate": "https://git.example.com/kept/commit/{sha}",
		"commit": {"authorTemplate": "{{or .Name .Username}} <{{.Username}}@example.com>", "committer": {"name": "mirror", "email": "mirror@example.com"}}}}`)
	remote, err := url.Parse(s.Env(devcluster.EnvGitURL))
	if err != nil {
		t.Fatal(err)
	}
	s.git = mirrortest.NewWire(t, remote.Host)
	s.pending = s.NewMirrorTo(t, unfinished, mirrortest.Remote{
		URL:    "http://" + s.git.Addr().String() + "/unfinished.git",
		Folder: filepath.Join(s.Env(devcluster.EnvGitRoot), "unfinished.git"),
	}, "granularity: PerChange")
	s.received, s.refused = receivertest.New(t, v1alpha1.PipelineFormatCloudEvents), receivertest.New(t, v1alpha1.PipelineFormatCloudEvents)
	s.inbox = notifytest.Webhook(t)
	s.Apply(t, source+"---"+fmt.Sprintf(written, base64.StdEncoding.EncodeToString(s.inbox.CABundle()), s.received.URL, s.refused.URL, s.inbox.URL))
	s.quiet.Watch(t, "all", "configmaps", "secrets", "cronjobs.batch")
	s.Ready(t, kept, "appcatalog/shop", "sink/record")
	s.Ready(t, "", "clusterwatchrule/kept", "syncpipeline/kept", "syncpipeline/unfinished")
	s.Ready(t, unfinished, "sink/webhook")
	s.pending.Watch(t, "all", "configmaps")
	s.ConfigMap(t, unfinished, "first", "a: '1'")
	s.sync(t, "copy", 1)
	s.sync(t, "branch", 1)
	s.setImage(t, "2")
	s.HasField(t, kept, "environment/copy", "{.status.latestRevision}", "2")
	s.sync(t, "copy", 2)
	s.ConfigMap(t, kept, "settings", "BANNER: summer")
	s.Delete(t, kept, "configmap/removed")
	s.quiet.Holds(t, s.quiet.ConfigMapPath("settings"), "summer")
	s.quiet.Lacks(t, s.quiet.ConfigMapPath("removed"))
	for _, m := range []*mirrortest.Mirror{s.quiet, s.pending} {
		m.Settled(t)
		m.ChangesAgree(t)
	}
}

// sync requests a sync of an environment, and waits until it has applied a revision.
func (s *scene) sync(t *testing.T, environment string, revision int) {
	t.Helper()
	s.HasField(t, kept, "environment/"+environment, "{.status.latestRevision}", strconv.Itoa(revision))
	s.request(t, "environments/"+environment+"/sync", "{}")
	s.HasField(t, kept, "environment/"+environment, "{.status.appliedRevision}", strconv.Itoa(revision))
	s.HaveCondition(t, kept, "CatalogUpToDate", "environment/"+environment)
}

// request creates a subresource of an object in the namespace of quiet.
func (s *scene) request(t *testing.T, path, body string) {
	t.Helper()
	if _, err := s.Try.Post(t.Context(), "/apis/configbutler.ai/v1alpha1/namespaces/"+kept+"/"+path, body); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// setImage changes the image of the workload in the source.
func (s *scene) setImage(t *testing.T, tag string) {
	t.Helper()
	s.Apply(t, strings.ReplaceAll(source, "report:1", "report:"+tag)[strings.LastIndex(source, "---")+len("---"):])
}

// image waits until the copy of the workload has an image.
func (s *scene) image(t *testing.T, tag string) {
	t.Helper()
	s.HasField(t, copied, "cronjob/report", "{.spec.jobTemplate.spec.template.spec.containers[0].image}", "registry.example.com/report:"+tag)
}

// leavePending makes a change that cannot be pushed, and changes that receivers refuse, and waits until they are stored.
func (s *scene) leavePending(t *testing.T) {
	t.Helper()
	s.refused.Always(receivertest.Status(http.StatusServiceUnavailable))
	s.inbox.Always(notifytest.Answer{Status: http.StatusServiceUnavailable})
	s.ConfigMap(t, unfinished, "notified", "a: '1'")
	s.pending.Holds(t, s.pending.ConfigMapPath("notified"), `a: "1"`)
	s.pending.Settled(t)
	s.commits = [2]int{s.number(t, s.quiet), s.number(t, s.pending)}
	s.git.Sever(true)
	s.ConfigMap(t, unfinished, "unpushed", "a: '1'")
	s.Apply(t, "{apiVersion: v1, kind: Service, metadata: {name: late, namespace: unfinished}, spec: {ports: [{port: 80}]}}")
	s.HasField(t, unfinished, "gitdestinationstatus/main", "{.status.pendingChanges}", "1")
	mirrortest.Eventually(t, "the receivers refuse the changes", func(context.Context) error {
		switch {
		case !slices.ContainsFunc(s.refused.Calls(), func(c receivertest.Call) bool { return c.Status == http.StatusServiceUnavailable }):
			return errors.New("the pipeline has sent nothing")
		case !slices.ContainsFunc(s.inbox.Requests(), func(r notifytest.Request) bool { return r.Status == http.StatusServiceUnavailable }):
			return errors.New("the NotificationSink has sent nothing")
		}
		return nil
	})
}

func (s *scene) number(t *testing.T, m *mirrortest.Mirror) int {
	t.Helper()
	number, err := strconv.Atoi(m.Commits(t))
	if err != nil {
		t.Fatal(err)
	}
	return number
}

// expectPendingWork waits until what the earlier version has stored is pushed, in one commit, and sent. Receivers may get it several times.
func (s *scene) expectPendingWork(t *testing.T) {
	t.Helper()
	s.git.Sever(false)
	s.refused.Always()
	s.inbox.Always()
	s.pending.Holds(t, s.pending.ConfigMapPath("unpushed"), `a: "1"`)
	for i, m := range []*mirrortest.Mirror{s.quiet, s.pending} {
		mirrortest.InSync(t, s.Administrator, m.Namespace, "main")
		m.ChangesAgree(t)
		if now := s.number(t, m); now != s.commits[i]+i {
			log, err := m.Git(t.Context(), "log", "--stat", m.Branch)
			t.Errorf("%d commits of %s, want %d: %v\n%s", now, m.Namespace, s.commits[i]+i, err, log)
		}
	}
	mirrortest.Eventually(t, "the pipeline sends what waited", func(context.Context) error {
		if _, found := s.refused.Object("unfinished/v1/Service/late"); !found {
			return fmt.Errorf("known objects: %q", s.refused.Known())
		}
		return nil
	})
	mirrortest.Eventually(t, "the notification that waited is sent", func(context.Context) error {
		if !slices.ContainsFunc(s.inbox.Requests(), func(r notifytest.Request) bool {
			return r.Status == http.StatusNoContent && strings.Contains(string(r.Body), "notified")
		}) {
			return fmt.Errorf("%d requests", len(s.inbox.Requests()))
		}
		return nil
	})
}

// expectNewWork makes changes of everything that the earlier version has begun.
func (s *scene) expectNewWork(t *testing.T) {
	t.Helper()
	s.request(t, "environments/copy/rollback", `{"spec": {"revision": 1}}`)
	s.image(t, "1")
	s.setImage(t, "3")
	s.Patch(t, kept, "environment/copy", `{"spec": {"pinnedRevision": null}}`)
	s.sync(t, "copy", 3)
	s.image(t, "3")
	s.request(t, "appcatalogs/shop/rollback", `{"spec": {"revision": 2}}`)
	s.sync(t, "copy", 4)
	s.image(t, "2")
	s.quiet.Settled(t)
	s.quiet.ChangesAgree(t)
	s.quiet.Intact(t)
}
