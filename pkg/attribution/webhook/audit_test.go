// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
)

var (
	begun = time.Date(2026, 11, 21, 12, 0, 0, 123456000, time.UTC)
	ended = begun.Add(7 * time.Millisecond)
	jane  = attribution.Actor{Username: "jane", Groups: []string{"developers"}}
)

// configMap is the response to a request that has created or changed a ConfigMap.
const configMap = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"settings","namespace":"shop","uid":"u1",` +
	`"resourceVersion":"42"},"data":{"a":"b"}}`

// event returns the event of an update of a ConfigMap by jane, with changes applied.
func event(changes ...func(*auditv1.Event)) auditv1.Event {
	event := auditv1.Event{
		Level: auditv1.LevelRequestResponse, AuditID: "a1", Stage: auditv1.StageResponseComplete,
		RequestURI: "/api/v1/namespaces/shop/configmaps/settings?fieldManager=kubectl", Verb: "update",
		User:           authenticationv1.UserInfo{Username: "jane", Groups: []string{"developers"}},
		ObjectRef:      &auditv1.ObjectReference{Resource: "configmaps", Namespace: "shop", Name: "settings", APIVersion: "v1"},
		ResponseStatus: &metav1.Status{Code: 200}, ResponseObject: raw(configMap),
		RequestReceivedTimestamp: metav1.NewMicroTime(begun), StageTimestamp: metav1.NewMicroTime(ended),
	}
	for _, change := range changes {
		change(&event)
	}
	return event
}

func raw(object string) *runtime.Unknown { return &runtime.Unknown{Raw: []byte(object)} }

// fact returns the fact of the event that event returns, with changes applied.
func fact(changes ...func(*attribution.Fact)) attribution.Fact {
	fact := attribution.Fact{
		Signal: attribution.Audit, Operation: v1alpha1.OperationUpdate, Resource: "configmaps", Namespace: "shop", Name: "settings",
		UID: "u1", After: "42", Begun: begun, Ended: ended, Actor: jane,
	}
	for _, change := range changes {
		change(&fact)
	}
	return fact
}

func operation(operation v1alpha1.Operation) func(*attribution.Fact) {
	return func(f *attribution.Fact) { f.Operation = operation }
}

func inexact(f *attribution.Fact) { f.UID, f.After = "", "" }

func request(verb, uri string, code int32) func(*auditv1.Event) {
	return func(e *auditv1.Event) { e.Verb, e.RequestURI, e.ResponseStatus.Code = verb, uri, code }
}

func response(object string) func(*auditv1.Event) {
	return func(e *auditv1.Event) { e.ResponseObject = raw(object) }
}

// terminating returns a ConfigMap whose deletion was requested, with more metadata.
func terminating(metadata string) string {
	return `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"settings","namespace":"shop","uid":"u1","resourceVersion":"42",` +
		`"deletionTimestamp":"2026-11-21T12:00:00Z",` + metadata + `}}`
}

func body(object string) func(*auditv1.Event) {
	return func(e *auditv1.Event) { e.RequestObject = raw(object) }
}

func subresource(name string) func(*auditv1.Event) {
	return func(e *auditv1.Event) { e.ObjectRef.Subresource = name }
}

func noResponse(e *auditv1.Event) { e.Level, e.ResponseObject = auditv1.LevelMetadata, nil }

// checkFacts checks the facts of one event. Their IDs must be set; their values are ignored.
func checkFacts(t *testing.T, event auditv1.Event, want []attribution.Fact) {
	t.Helper()
	got, counts := FactsOfAudit(&auditv1.EventList{Items: []auditv1.Event{event}})
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(attribution.Fact{}, "ID"), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
	if (counts.WithFacts == 1) != (len(want) > 0) || counts.Unreadable != 0 {
		t.Errorf("counts = %+v with %d facts", counts, len(want))
	}
	for i := range got {
		if len(got[i].ID) != 2*idSize {
			t.Errorf("ID = %q", got[i].ID)
		}
	}
}

func TestWrites(t *testing.T) {
	tests := map[string]struct {
		event auditv1.Event
		want  []attribution.Fact
	}{
		"update":                         {event: event(), want: []attribution.Fact{fact()}},
		"patch":                          {event: event(request("patch", "/x", 200)), want: []attribution.Fact{fact()}},
		"create":                         {event: event(request("create", "/x", 201)), want: []attribution.Fact{fact(operation("CREATE"))}},
		"server-side apply that creates": {event: event(request("patch", "/x", 201)), want: []attribution.Fact{fact(operation("CREATE"))}},
		"update that creates":            {event: event(request("update", "/x", 201)), want: []attribution.Fact{fact(operation("CREATE"))}},
		"generated name": {
			event: event(request("create", "/x", 201), func(e *auditv1.Event) { e.ObjectRef.Name = "" }),
			want:  []attribution.Fact{fact(operation("CREATE"))},
		},
		"generated name, not reported": {
			event: event(request("create", "/x", 201), noResponse, func(e *auditv1.Event) { e.ObjectRef.Name = "" }),
		},
		"level Metadata": {event: event(noResponse), want: []attribution.Fact{fact(inexact)}},
		"truncated": {
			event: event(func(e *auditv1.Event) {
				e.ResponseObject, e.Annotations = nil, map[string]string{"audit.k8s.io/truncated": "true"}
			}),
			want: []attribution.Fact{fact(inexact)},
		},
		"response is a Status": {
			event: event(response(`{"kind":"Status","apiVersion":"v1","metadata":{}}`)), want: []attribution.Fact{fact(inexact)},
		},
		"response is another object": {
			event: event(response(`{"kind":"X","apiVersion":"v1","metadata":{"name":"other","uid":"u","resourceVersion":"1"}}`)),
			want:  []attribution.Fact{fact(inexact)},
		},
		"response without resourceVersion": {
			event: event(response(`{"metadata":{"name":"settings","uid":"u"}}`)), want: []attribution.Fact{fact(inexact)},
		},
		"custom resource with fields of other kinds": {
			event: event(response(`{"kind":"Status","apiVersion":"x.org/v1","details":7,"items":{"a":1},"metadata":{"name":"settings","uid":"u1",` +
				`"resourceVersion":"42"}}`)),
			want: []attribution.Fact{fact()},
		},
		"namespace": {
			event: event(func(e *auditv1.Event) {
				e.ObjectRef = &auditv1.ObjectReference{Resource: "namespaces", Namespace: "shop", Name: "shop"}
				e.ResponseObject = raw(`{"metadata":{"name":"shop","uid":"u1","resourceVersion":"42"}}`)
			}),
			want: []attribution.Fact{fact(func(f *attribution.Fact) { f.Resource, f.Namespace, f.Name = "namespaces", "", "shop" })},
		},
		"group": {
			event: event(func(e *auditv1.Event) { e.ObjectRef.APIGroup, e.ObjectRef.Resource = "apps", "deployments" }),
			want:  []attribution.Fact{fact(func(f *attribution.Fact) { f.Group, f.Resource = "apps", "deployments" })},
		},
		"removal of a finalizer": {
			event: event(response(terminating(`"deletionGracePeriodSeconds":0,"finalizers":["x.org/y"]`))), want: []attribution.Fact{fact()},
		},
		"removal of the last finalizer":                       {event: event(response(terminating(`"deletionGracePeriodSeconds":0`)))},
		"removal of the last finalizer, without grace period": {event: event(response(terminating(`"finalizers":[]`)))},
		"write during a grace period": {
			event: event(response(terminating(`"deletionGracePeriodSeconds":30`))), want: []attribution.Fact{fact()},
		},
		"write to a terminating namespace": {
			event: event(response(terminating(`"deletionGracePeriodSeconds":0`)), func(e *auditv1.Event) {
				e.ObjectRef = &auditv1.ObjectReference{Resource: "namespaces", Name: "settings"}
			}),
			want: []attribution.Fact{fact(func(f *attribution.Fact) { f.Resource, f.Namespace = "namespaces", "" })},
		},
		"dry run":            {event: event(request("update", "/x?dryRun=All", 200))},
		"dry run among more": {event: event(request("create", "/x?fieldManager=k&dryRun=All", 201))},
		"refused":            {event: event(request("update", "/x", 409))},
		"redirected":         {event: event(request("update", "/x", 302))},
		"no response yet":    {event: event(func(e *auditv1.Event) { e.Stage = auditv1.StageRequestReceived })},
		"panic":              {event: event(func(e *auditv1.Event) { e.Stage = auditv1.StagePanic })},
		"no status":          {event: event(func(e *auditv1.Event) { e.ResponseStatus = nil })},
		"no object":          {event: event(func(e *auditv1.Event) { e.ObjectRef = nil })},
		"reading":            {event: event(request("get", "/x", 200))},
		"listing":            {event: event(request("list", "/x", 200))},
		"an HTTP method":     {event: event(request("post", "/x", 200))},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { checkFacts(t, tt.event, tt.want) })
	}
}

func TestSubresources(t *testing.T) {
	scale := `{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"settings","namespace":"shop","uid":"u1",` +
		`"resourceVersion":"42"},"spec":{"replicas":3}}`
	tests := map[string]struct {
		event auditv1.Event
		want  []attribution.Fact
	}{
		"scale":                       {event: event(subresource("scale"), response(scale)), want: []attribution.Fact{fact()}},
		"scale at level Metadata":     {event: event(subresource("scale"), noResponse), want: []attribution.Fact{fact(inexact)}},
		"scale without uid":           {event: event(subresource("scale"), response(`{"kind":"Scale","metadata":{"name":"settings"}}`))},
		"one that returns its parent": {event: event(subresource("ephemeralcontainers")), want: []attribution.Fact{fact()}},
		"one that creates, and returns its parent": {
			event: event(request("create", "/x", 201), subresource("approve")), want: []attribution.Fact{fact()},
		},
		"one at level Metadata": {event: event(subresource("ephemeralcontainers"), noResponse)},
		"token": {
			event: event(request("create", "/x", 201), subresource("token"),
				response(`{"kind":"TokenRequest","metadata":{"name":"settings","namespace":"shop"}}`)),
		},
		"status":           {event: event(subresource("status"))},
		"exec":             {event: event(request("create", "/x", 200), subresource("exec"), response("null"))},
		"proxy":            {event: event(subresource("proxy"))},
		"delete by proxy":  {event: event(request("delete", "/x", 200), subresource("proxy"))},
		"delete of a part": {event: event(request("delete", "/x", 200), subresource("part"))},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { checkFacts(t, tt.event, tt.want) })
	}
}

func TestDeletions(t *testing.T) {
	deletedStatus := `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":"settings","kind":"configmaps",` +
		`"uid":"u1"}}`
	terminating := `{"kind":"ConfigMap","metadata":{"name":"settings","uid":"u1","resourceVersion":"43",` +
		`"deletionTimestamp":"2026-11-21T12:00:00Z","finalizers":["x.org/y"]}}`
	deleted := func(changes ...func(*attribution.Fact)) []attribution.Fact {
		f := fact(operation("DELETE"), inexact)
		for _, change := range changes {
			change(&f)
		}
		return []attribution.Fact{f}
	}
	uid := func(f *attribution.Fact) { f.UID = "u1" }
	tests := map[string]struct {
		changes []func(*auditv1.Event)
		want    []attribution.Fact
	}{
		"at once":                         {changes: []func(*auditv1.Event){response(deletedStatus)}, want: deleted(uid)},
		"at once, response is the object": {want: deleted(uid)},
		"with finalizers": {
			changes: []func(*auditv1.Event){response(terminating)},
			want:    deleted(uid, func(f *attribution.Fact) { f.After, f.Lasting = "43", true }),
		},
		"a status without details": {changes: []func(*auditv1.Event){response(`{"kind":"Status","apiVersion":"v1"}`)}, want: deleted()},
		"level Metadata":           {changes: []func(*auditv1.Event){noResponse}, want: deleted()},
		"level Request": {
			changes: []func(*auditv1.Event){noResponse, body(`{"kind":"DeleteOptions","propagationPolicy":"Background"}`)}, want: deleted(),
		},
		"dry run by the body": {
			changes: []func(*auditv1.Event){response(deletedStatus), body(`{"kind":"DeleteOptions","dryRun":["All"]}`)},
		},
		"dry run by the body, no response": {changes: []func(*auditv1.Event){noResponse, body(`{"dryRun":["All"]}`)}},
		"without a name": {
			changes: []func(*auditv1.Event){response(deletedStatus), func(e *auditv1.Event) { e.ObjectRef.Name = "" }},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			checkFacts(t, event(append([]func(*auditv1.Event){request("delete", "/x", 200)}, tt.changes...)...), tt.want)
		})
	}
}

func TestCollections(t *testing.T) {
	const uri = "/api/v1/namespaces/shop/configmaps?labelSelector=app%3Dweb&fieldSelector=metadata.name%21%3Da"
	list := `{"kind":"ConfigMapList","apiVersion":"v1","items":[{"metadata":{"name":"a","namespace":"shop","uid":"ua","resourceVersion":"1"}},
		{"metadata":{"name":"b","namespace":"shop","uid":"ub","resourceVersion":"2","finalizers":["x.org/y"]}}]}`
	item := func(name string, lasting bool) attribution.Fact {
		return fact(operation("DELETE"), func(f *attribution.Fact) {
			f.Name, f.UID, f.After, f.Lasting = name, types.UID("u"+name), "", lasting
		})
	}
	all := fact(operation("DELETE"), inexact, func(f *attribution.Fact) {
		f.Name, f.Collection = "", &attribution.Collection{LabelSelector: "app=web", FieldSelector: "metadata.name!=a"}
	})
	pods := func(e *auditv1.Event) { e.ObjectRef.Resource = "pods" }
	tests := map[string]struct {
		uri     string
		changes []func(*auditv1.Event)
		want    []attribution.Fact
	}{
		"listed": {
			changes: []func(*auditv1.Event){response(list)}, want: []attribution.Fact{item("a", false), item("b", true)},
		},
		"listed, in the foreground": {
			uri: uri + "&propagationPolicy=Foreground", changes: []func(*auditv1.Event){response(list)},
			want: []attribution.Fact{item("a", true), item("b", true)},
		},
		"listed, orphaning": {
			changes: []func(*auditv1.Event){response(list), body(`{"orphanDependents":true}`)},
			want:    []attribution.Fact{item("a", true), item("b", true)},
		},
		"listed, in the background": {
			changes: []func(*auditv1.Event){response(list), body(`{"propagationPolicy":"Background"}`)},
			want:    []attribution.Fact{item("a", false), item("b", true)},
		},
		"pods, which have a grace period": {
			changes: []func(*auditv1.Event){response(list), pods},
			want: []attribution.Fact{
				func() attribution.Fact { f := item("a", true); f.Resource = "pods"; return f }(),
				func() attribution.Fact { f := item("b", true); f.Resource = "pods"; return f }(),
			},
		},
		"nothing listed":       {changes: []func(*auditv1.Event){response(`{"kind":"ConfigMapList","items":[]}`)}},
		"level Metadata":       {changes: []func(*auditv1.Event){noResponse}, want: []attribution.Fact{all}},
		"response is a Status": {changes: []func(*auditv1.Event){response(`{"kind":"Status","apiVersion":"v1"}`)}, want: []attribution.Fact{all}},
		"items without uid": {
			changes: []func(*auditv1.Event){response(`{"items":[{"metadata":{"name":"a"}}]}`)}, want: []attribution.Fact{all},
		},
		"dry run":             {uri: uri + "&dryRun=All", changes: []func(*auditv1.Event){response(list)}},
		"dry run by the body": {changes: []func(*auditv1.Event){response(list), body(`{"dryRun":["All"]}`)}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			collection := func(e *auditv1.Event) { e.ObjectRef.Name = "" }
			where := uri
			if tt.uri != "" {
				where = tt.uri
			}
			checkFacts(t, event(append([]func(*auditv1.Event){request("deletecollection", where, 200), collection}, tt.changes...)...), tt.want)
		})
	}
}

func TestActors(t *testing.T) {
	extra := func(key string, values ...string) map[string]authenticationv1.ExtraValue {
		return map[string]authenticationv1.ExtraValue{key: values}
	}
	tests := map[string]struct {
		change func(*auditv1.Event)
		want   attribution.Actor
	}{
		"impersonated": {
			change: func(e *auditv1.Event) {
				e.ImpersonatedUser = &authenticationv1.UserInfo{Username: "joe", Groups: []string{"g"}, Extra: extra("email", "joe@x.org")}
				e.User.Extra = extra("email", "jane@x.org")
			},
			want: attribution.Actor{Username: "joe", Groups: []string{"g"}, Email: "joe@x.org", ImpersonatedBy: "jane"},
		},
		"email": {
			change: func(e *auditv1.Event) { e.User.Extra = extra("email", "", "jane@x.org", "other@x.org") },
			want:   attribution.Actor{Username: "jane", Groups: jane.Groups, Email: "jane@x.org"},
		},
		"name under a domain": {
			change: func(e *auditv1.Event) { e.User.Extra = extra("idp.x.org/name", "Jane Roe") },
			want:   attribution.Actor{Username: "jane", Groups: jane.Groups, Name: "Jane Roe"},
		},
		"several": {
			change: func(e *auditv1.Event) {
				e.User.Extra = map[string]authenticationv1.ExtraValue{
					"b.org/email": {"b"}, "a.org/email": {"a"}, "email": {""}, "nickname": {"n"}, "pod-name": {"p"},
				}
			},
			want: attribution.Actor{Username: "jane", Groups: jane.Groups, Email: "a"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			checkFacts(t, event(tt.change), []attribution.Fact{fact(func(f *attribution.Fact) { f.Actor = tt.want })})
		})
	}
}

func TestUnreadableEvents(t *testing.T) {
	for name, change := range map[string]func(*auditv1.Event){
		"no user":                 func(e *auditv1.Event) { e.User = authenticationv1.UserInfo{} },
		"empty impersonated user": func(e *auditv1.Event) { e.ImpersonatedUser = &authenticationv1.UserInfo{} },
		"no URI":                  func(e *auditv1.Event) { e.RequestURI = "" },
		"an invalid URI":          func(e *auditv1.Event) { e.RequestURI = "/%zz" },
		"an invalid response":     response("[]"),
		"invalid metadata":        response(`{"metadata":{"name":7}}`),
		"invalid options":         func(e *auditv1.Event) { e.Verb, e.RequestObject = "delete", raw(`{"dryRun":"All"}`) },
		"an invalid status": func(e *auditv1.Event) {
			e.Verb, e.ResponseObject = "delete", raw(`{"kind":"Status","apiVersion":"v1","details":7}`)
		},
		"an invalid list":            func(e *auditv1.Event) { e.Verb, e.ResponseObject = "deletecollection", raw(`{"items":{}}`) },
		"invalid collection options": func(e *auditv1.Event) { e.Verb, e.RequestObject = "deletecollection", raw(`7`) },
	} {
		t.Run(name, func(t *testing.T) {
			list := &auditv1.EventList{Items: []auditv1.Event{event(change), event()}}
			facts, counts := FactsOfAudit(list)
			if want := (Counts{WithFacts: 1, Unreadable: 1}); counts != want || len(facts) != 1 {
				t.Errorf("counts = %+v, want %+v; facts: %v", counts, want, facts)
			}
		})
	}
}

// TestIDs checks that requests with the same audit ID have different IDs. A client may choose its audit ID, and must not
// be able to hide another request by that.
func TestIDs(t *testing.T) {
	id := func(changes ...func(*auditv1.Event)) string {
		facts, _ := FactsOfAudit(&auditv1.EventList{Items: []auditv1.Event{event(changes...)}})
		if len(facts) != 1 {
			t.Fatalf("facts: %v", facts)
		}
		return facts[0].ID
	}
	if again := id(); again != id() {
		t.Error("repeated request has two IDs")
	}
	for what, change := range map[string]func(*auditv1.Event){
		"user":   func(e *auditv1.Event) { e.User.Username = "joe" },
		"time":   func(e *auditv1.Event) { e.RequestReceivedTimestamp.Time = begun.Add(-time.Microsecond) },
		"object": func(e *auditv1.Event) { e.ObjectRef.Resource = "secrets" },
		"change": response(`{"metadata":{"name":"settings","uid":"u1","resourceVersion":"43"}}`),
		"ID":     func(e *auditv1.Event) { e.AuditID = "a2" },
	} {
		if id(change) == id() {
			t.Errorf("another %s has the same ID", what)
		}
	}
}
