// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package callerrights_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
)

type pipelineSpec = *configbutler.SyncPipelineSpec

// pipeline sends definitions and objects of two types to an index, with the Secret bank/token, and starts Jobs in shop as robot.
func pipeline(change ...func(pipelineSpec)) *configbutler.SyncPipeline {
	pipeline := &configbutler.SyncPipeline{
		ObjectMeta: metav1.ObjectMeta{Name: "index"},
		Spec: configbutler.SyncPipelineSpec{
			Instances: configbutler.InstanceSource{Resources: resources("deployments.apps", "configmaps"), Exclude: resources("events")},
			Sinks: []configbutler.PipelineSink{
				{Name: "index", HTTP: &configbutler.HTTPSink{
					URL: "https://index.example.com", Format: configbutler.PipelineFormatCloudEvents,
					SecretRef: &configbutler.NamespacedObjectReference{Namespace: "bank", Name: "token"},
				}},
				{Name: "batch", Job: &configbutler.JobSink{
					Namespace: "shop", ServiceAccountName: "robot", Template: runtime.RawExtension{Raw: []byte(`{"spec":{}}`)},
				}},
			},
		},
	}
	for _, apply := range change {
		apply(&pipeline.Spec)
	}
	return pipeline
}

func onlyDefinitions(s pipelineSpec) { s.Instances.Enabled = ptr.To(false) }
func onlyInstances(s pipelineSpec)   { s.CustomResourceDefinitions.Enabled = ptr.To(false) }
func everything(s pipelineSpec)      { s.Instances.Resources = nil }
func noJobs(s pipelineSpec)          { s.Sinks = s.Sinks[:1] }
func onlyJobs(s pipelineSpec)        { s.Sinks = s.Sinks[1:] }

func includes(names ...string) func(pipelineSpec) {
	return func(s pipelineSpec) { s.CustomResourceDefinitions.Include = names }
}

func chooses(types ...string) func(pipelineSpec) {
	return func(s pipelineSpec) { s.Instances.Resources = types }
}

var (
	listsDefinitions = []string{"list customresourcedefinitions.apiextensions.k8s.io"}
	listsTypes       = []string{"list deployments.apps", "list configmaps"}
	getsToken        = []string{"get secrets bank/token"}
	startsJobs       = []string{"create jobs.batch shop", "create configmaps shop", "impersonate serviceaccounts shop/robot"}
	// sendsAll is what the pipeline takes.
	sendsAll = slices.Concat(listsDefinitions, listsTypes, getsToken, startsJobs)
)

func TestWhatAPipelineTakes(t *testing.T) {
	tests := []struct {
		name string
		obj  *configbutler.SyncPipeline
		asks []string
	}{
		{name: "definitions, instances, a server and Jobs", obj: pipeline(), asks: sendsAll},
		{name: "definitions", obj: pipeline(onlyDefinitions, noJobs), asks: slices.Concat(listsDefinitions, getsToken)},
		{
			name: "some definitions", obj: pipeline(onlyDefinitions, noJobs, includes("coupons.shop.example.com")),
			asks: slices.Concat(listsDefinitions, getsToken),
		},
		{name: "instances", obj: pipeline(onlyInstances, noJobs), asks: slices.Concat(listsTypes, getsToken)},
		{
			name: "instances of every type", obj: pipeline(everything, onlyInstances, noJobs),
			asks: slices.Concat([]string{"list *.*"}, getsToken),
		},
		{
			name: "instances of every type by the wildcard, whatever is left out", asks: slices.Concat([]string{"list *.*"}, getsToken),
			obj: pipeline(chooses("configmaps", "*"), onlyInstances, noJobs, func(s pipelineSpec) { s.Instances.Exclude = resources("secrets") }),
		},
		{
			name: "Secrets", obj: pipeline(chooses("secrets"), onlyInstances, noJobs),
			asks: slices.Concat([]string{"list secrets"}, getsToken),
		},
		{
			name: "a plural is every served type of that name", obj: pipeline(chooses("deployments"), onlyInstances, onlyJobs),
			asks: slices.Concat([]string{"list deployments.apps", "list deployments.example.com"}, startsJobs),
		},
		{
			name: "a type that is not served", obj: pipeline(chooses("things.later.io", "widgets"), onlyInstances, onlyJobs),
			asks: slices.Concat([]string{"list things.later.io", "list widgets.*"}, startsJobs),
		},
		{
			name: "types that are left out", asks: slices.Concat([]string{"list secrets"}, startsJobs),
			obj: pipeline(chooses("events", "events.events.k8s.io", "secrets"), onlyInstances, onlyJobs),
		},
		{
			name: "a server without credentials", asks: listsDefinitions,
			obj: pipeline(onlyDefinitions, noJobs, func(s pipelineSpec) { s.Sinks[0].HTTP.SecretRef = nil }),
		},
		{
			name: "Jobs of the namespace's own account",
			obj:  pipeline(onlyDefinitions, onlyJobs, func(s pipelineSpec) { s.Sinks[0].Job.ServiceAccountName = "" }),
			asks: slices.Concat(listsDefinitions, startsJobs[:2], []string{"impersonate serviceaccounts shop/default"}),
		},
		{name: "while it is suspended", obj: pipeline(func(s pipelineSpec) { s.Suspend = true }), asks: sendsAll},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { asksFor(t, request(tt.obj, nil, admission.Create, ""), existing{}, tt.asks) })
	}
}

// TestWhatAChangeOfAPipelineTakes checks that a user who changes a part needs the permissions for the whole: what is sent, to which
// receivers, and with which credentials.
func TestWhatAChangeOfAPipelineTakes(t *testing.T) {
	jobs := func(change func(*configbutler.JobSink)) func(pipelineSpec) {
		return func(s pipelineSpec) { change(s.Sinks[1].Job) }
	}
	server := func(change func(*configbutler.HTTPSink)) func(pipelineSpec) {
		return func(s pipelineSpec) { change(s.Sinks[0].HTTP) }
	}
	minute := &metav1.Duration{Duration: time.Minute}
	suspended := func(s pipelineSpec) { s.Suspend = true }
	tests := []struct {
		name     string
		from, to func(pipelineSpec)
		asks     []string
	}{
		{name: "another URL", to: server(func(h *configbutler.HTTPSink) { h.URL = "https://mine.example.com" }), asks: sendsAll},
		{
			name: "another URL while it is suspended", asks: sendsAll, from: suspended,
			to: func(s pipelineSpec) { s.Suspend, s.Sinks[0].HTTP.URL = true, "https://mine.example.com" },
		},
		{name: "another authority", to: server(func(h *configbutler.HTTPSink) { h.CABundle = []byte("mine") }), asks: sendsAll},
		{name: "another format", to: server(func(h *configbutler.HTTPSink) { h.Format = configbutler.PipelineFormatDotAI }), asks: sendsAll},
		{
			name: "another Secret", to: server(func(h *configbutler.HTTPSink) { h.SecretRef.Name = "root" }),
			asks: slices.Concat(listsDefinitions, listsTypes, []string{"get secrets bank/root"}, startsJobs),
		},
		{
			name: "a Secret of another namespace", to: server(func(h *configbutler.HTTPSink) { h.SecretRef.Namespace = "kube-system" }),
			asks: slices.Concat(listsDefinitions, listsTypes, []string{"get secrets kube-system/token"}, startsJobs),
		},
		{
			name: "a proxy", asks: slices.Concat(listsDefinitions, listsTypes, getsToken, []string{"get secrets ops/proxy"}, startsJobs),
			to: server(func(h *configbutler.HTTPSink) {
				h.ProxySecretRef = &configbutler.NamespacedObjectReference{Namespace: "ops", Name: "proxy"}
			}),
		},
		{
			name: "the credentials of one sink for another's URL", asks: slices.Concat(listsDefinitions, listsTypes, getsToken),
			to: func(s pipelineSpec) {
				s.Sinks[1] = configbutler.PipelineSink{Name: "index", HTTP: s.Sinks[0].HTTP.DeepCopy()}
				s.Sinks[1].HTTP.URL = "https://mine.example.com"
				s.Sinks = s.Sinks[1:]
			},
		},
		{name: "a sink more", asks: sendsAll, from: noJobs},
		{name: "a sink of another name", asks: sendsAll, to: func(s pipelineSpec) { s.Sinks[0].Name = "mine" }},
		{
			name: "another template", asks: sendsAll,
			to: jobs(func(j *configbutler.JobSink) { j.Template.Raw = []byte(`{"spec":{"suspend":true}}`) }),
		},
		{
			name: "another account", to: jobs(func(j *configbutler.JobSink) { j.ServiceAccountName = "root" }),
			asks: slices.Concat(sendsAll[:len(sendsAll)-1], []string{"impersonate serviceaccounts shop/root"}),
		},
		{
			name: "Jobs in another namespace", to: jobs(func(j *configbutler.JobSink) { j.Namespace = "kube-system" }),
			asks: slices.Concat(listsDefinitions, listsTypes, getsToken, []string{
				"create jobs.batch kube-system", "create configmaps kube-system", "impersonate serviceaccounts kube-system/robot",
			}),
		},
		{name: "the end of a suspension", from: suspended, asks: sendsAll},
		{name: "definitions", from: onlyInstances, asks: sendsAll},
		{name: "instances", from: onlyDefinitions, asks: sendsAll},
		{name: "a type more", from: chooses("configmaps"), asks: sendsAll},
		{name: "every type", to: everything, asks: slices.Concat(listsDefinitions, []string{"list *.*"}, getsToken, startsJobs)},
		{name: "a type that was left out", to: func(s pipelineSpec) { s.Instances.Exclude = nil }, asks: sendsAll},
		{name: "all definitions", from: includes("*.example.com"), asks: sendsAll},
		{name: "all definitions by the wildcard", from: includes("*.example.com"), to: includes("*"), asks: sendsAll},
		{name: "other definitions", from: includes("*.example.com"), to: includes("*.example.org"), asks: sendsAll},

		{name: "a suspension", to: suspended},
		{name: "a sink less", to: noJobs},
		{name: "no definitions", to: onlyInstances},
		{name: "no instances", to: onlyDefinitions},
		{name: "a type less", to: chooses("configmaps")},
		{name: "one type of all", from: everything, to: chooses("secrets")},
		{name: "a type left out", to: func(s pipelineSpec) { s.Instances.Exclude = resources("events", "configmaps") }},
		{name: "some definitions", to: includes("*.example.com")},
		{name: "some definitions of all", from: includes("*"), to: includes("*.example.com")},
		{name: "definitions left out", to: func(s pipelineSpec) { s.CustomResourceDefinitions.Exclude = []string{"*.example.com"} }},
		{name: "when and how often", from: noJobs, to: func(s pipelineSpec) {
			noJobs(s)
			s.Mode, s.PollInterval, s.Debounce, s.ResyncInterval = configbutler.PipelineModePoll, minute, minute, minute
			s.Batch.MaxItems, s.Sinks[0].Retry.Backoff, s.Sinks[0].HTTP.Timeout = ptr.To[int32](7), minute, minute
		}},
		{name: "how many Jobs", asks: sendsAll, to: func(s pipelineSpec) { s.Batch.MaxItems = ptr.To[int32](1) }},
		{name: "nothing"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			versions := []*configbutler.SyncPipeline{pipeline(), pipeline()}
			for i, change := range []func(pipelineSpec){tt.from, tt.to} {
				if change != nil {
					change(&versions[i].Spec)
				}
			}
			versions[1].Labels = map[string]string{"a": "b"}
			asksFor(t, request(versions[1], versions[0], admission.Update, ""), existing{}, tt.asks)
		})
	}
}

// TestRequestsAboutAPipeline checks that a dry run needs the permissions of its request, and that a trigger needs none: the editors of the
// pipeline had the permissions for what it sends.
func TestRequestsAboutAPipeline(t *testing.T) {
	as := func(subresource string, operation admission.Operation, dryRun bool) admission.Attributes {
		return admission.NewAttributesRecord(pipeline(), nil, configbutler.SchemeGroupVersion.WithKind("SyncPipeline"),
			"", "index", configbutler.SchemeGroupVersion.WithResource("syncpipelines"),
			subresource, operation, nil, dryRun, &user.DefaultInfo{Name: "jane"})
	}
	asksFor(t, as("", admission.Create, true), existing{}, sendsAll)
	asksFor(t, as("status", admission.Update, false), existing{}, nil)
	asksFor(t, as("sync", admission.Create, false), existing{}, nil)
}

func TestPipelineGetsAWarningForTypesThatAreNotServed(t *testing.T) {
	recorded := &warnings{}
	ctx := warning.WithWarningRecorder(t.Context(), recorded)
	obj := pipeline(chooses("deployments.app", "things"), onlyInstances, noJobs)
	asks := slices.Concat([]string{"list deployments.app", "list things.*"}, getsToken)
	if err := plugin(t, &rbac{allowed: asks}, cluster()).Validate(ctx, request(obj, nil, admission.Create, ""), nil); err != nil {
		t.Fatal(err)
	}
	const later = "; it will be followed when it appears"
	want := []string{
		"spec.instances.resources: deployments.app: no such resource type in these groups; did you mean deployments.apps?" + later,
		"spec.instances.resources: things: no such resource type" + later,
	}
	if diff := cmp.Diff(want, recorded.texts); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestRefusalOfAPipelineNamesThePermissionAndTheWayOut(t *testing.T) {
	const behalf = ", which the server would do on their behalf: "
	tests := []struct {
		name string
		lack string
		obj  *configbutler.SyncPipeline
		want string
	}{
		{
			"definitions", sendsAll[0], pipeline(),
			`cannot list customresourcedefinitions.apiextensions.k8s.io in the whole cluster` + behalf +
				`ask for a ClusterRole that allows list on resource "customresourcedefinitions" in API group "apiextensions.k8s.io", ` +
				`or let spec.customResourceDefinitions.enabled be false`,
		},
		{
			"a type", "list configmaps", pipeline(),
			`cannot list configmaps in the whole cluster` + behalf +
				`ask for a ClusterRole that allows list on resource "configmaps" in API group "", ` +
				`or leave configmaps out of spec.instances.resources`,
		},
		{
			"every type", "list *.*", pipeline(everything),
			`cannot list *.* in the whole cluster` + behalf +
				`ask for a ClusterRole that allows list on resource "*" in API group "*", ` +
				`or name the types that you may list in spec.instances.resources`,
		},
		{
			"a Secret", "get secrets bank/token", pipeline(),
			`cannot get secrets "token" in the namespace bank` + behalf +
				`ask for a Role in the namespace bank that allows get on resource "secrets" in API group "", ` +
				`or let spec.sinks[0].http.secretRef name a Secret that you may read`,
		},
		{
			"Jobs", "create jobs.batch shop", pipeline(),
			`cannot create jobs.batch in the namespace shop` + behalf +
				`ask for a Role in the namespace shop that allows create on resource "jobs" in API group "batch", ` +
				`or let spec.sinks[1].job.namespace be one in which you may`,
		},
		{
			"an account", "impersonate serviceaccounts shop/robot", pipeline(),
			`cannot impersonate serviceaccounts "robot" in the namespace shop, as which the Jobs would run: ` +
				`ask for a Role in the namespace shop that allows impersonate on resource "serviceaccounts" in API group "", ` +
				`or let spec.sinks[1].job.serviceAccountName name one as which you may act`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			allowed := slices.DeleteFunc(append(slices.Clone(sendsAll), "list *.*"), func(ask string) bool { return ask == tt.lack })
			err := plugin(t, &rbac{allowed: allowed}, cluster()).Validate(t.Context(), request(tt.obj, nil, admission.Create, ""), nil)
			if !apierrors.IsForbidden(err) || !strings.HasSuffix(err.Error(), `is forbidden: user "jane" `+tt.want+afterGrant) {
				t.Errorf("refusal = %v\nwant it to end in %s", err, tt.want)
			}
		})
	}
}
