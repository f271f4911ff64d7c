// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configbutler/slipstream/pkg/attribution"
)

// hash replaces the keyed hash, so that a test sees the hashed content.
func hash(content []byte) string { return "hash of\n" + string(content) }

const (
	// newConfigMap and oldConfigMap are the objects of jane's update, with runtime fields.
	newConfigMap = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"settings","namespace":"shop","uid":"u1","resourceVersion":"42",
		"managedFields":[{"manager":"kubectl","operation":"Update"}]},"data":{"a":"c"}}`
	oldConfigMap = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"settings","namespace":"shop","uid":"u1",` +
		`"resourceVersion":"42"},"data":{"a":"b"}}`
	// canonical is newConfigMap without the runtime fields.
	canonical = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n  namespace: shop\ndata:\n  a: c\n"
)

// review returns the review of an update of a ConfigMap by jane, with changes applied.
func review(changes ...func(*admissionv1.AdmissionRequest)) *admissionv1.AdmissionReview {
	request := &admissionv1.AdmissionRequest{
		UID: "r1", Resource: metav1.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Name: "settings", Namespace: "shop",
		Operation: admissionv1.Update, UserInfo: authenticationv1.UserInfo{Username: "jane", Groups: []string{"developers"}},
		Object: runtime.RawExtension{Raw: []byte(newConfigMap)}, OldObject: runtime.RawExtension{Raw: []byte(oldConfigMap)},
	}
	for _, change := range changes {
		change(request)
	}
	return &admissionv1.AdmissionReview{Request: request}
}

// proposed returns the fact of the review that review returns, with changes applied.
func proposed(changes ...func(*attribution.Fact)) *attribution.Fact {
	fact := fact(func(f *attribution.Fact) {
		f.Signal, f.After, f.Before, f.Content = attribution.Admission, "", "42", hash([]byte(canonical))
		f.Ended = time.Time{}
	})
	for _, change := range changes {
		change(&fact)
	}
	return &fact
}

func TestReviews(t *testing.T) {
	set := func(operation admissionv1.Operation, object, old string) func(*admissionv1.AdmissionRequest) {
		return func(r *admissionv1.AdmissionRequest) {
			r.Operation, r.Object.Raw, r.OldObject.Raw = operation, []byte(object), []byte(old)
		}
	}
	resource := func(group, resource, subresource string) func(*admissionv1.AdmissionRequest) {
		return func(r *admissionv1.AdmissionRequest) {
			r.Resource.Group, r.Resource.Resource, r.SubResource = group, resource, subresource
		}
	}
	options := func(options string) func(*admissionv1.AdmissionRequest) {
		return func(r *admissionv1.AdmissionRequest) { r.Options.Raw = []byte(options) }
	}
	deletion := set(admissionv1.Delete, "", oldConfigMap)
	deleted := func(changes ...func(*attribution.Fact)) *attribution.Fact {
		return proposed(append([]func(*attribution.Fact){operation("DELETE"), func(f *attribution.Fact) { f.Content = "" }}, changes...)...)
	}
	lasting := func(f *attribution.Fact) { f.Lasting = true }
	in := func(resource string) func(*attribution.Fact) {
		return func(f *attribution.Fact) { f.Resource = resource }
	}
	scale := func(spec string) string {
		return `{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"settings","namespace":"shop","uid":"u1",` +
			`"resourceVersion":"42"},"spec":` + spec + `}`
	}
	scaled := func(replicas int64) *attribution.Fact {
		return proposed(func(f *attribution.Fact) {
			f.Group, f.Resource, f.Content, f.Replicas = "apps", "deployments", "", &replicas
		})
	}
	tests := map[string]struct {
		changes []func(*admissionv1.AdmissionRequest)
		want    *attribution.Fact
	}{
		"update": {want: proposed()},
		"create": {
			changes: []func(*admissionv1.AdmissionRequest){set(admissionv1.Create, newConfigMap, "")},
			want:    proposed(operation("CREATE"), func(f *attribution.Fact) { f.Before = "" }),
		},
		"create with a generated name": {
			changes: []func(*admissionv1.AdmissionRequest){
				set(admissionv1.Create, newConfigMap, ""), func(r *admissionv1.AdmissionRequest) { r.Name = "" },
			},
			want: proposed(operation("CREATE"), func(f *attribution.Fact) { f.Before = "" }),
		},
		"namespace": {
			changes: []func(*admissionv1.AdmissionRequest){
				deletion, resource("", "namespaces", ""), func(r *admissionv1.AdmissionRequest) { r.Namespace = "settings" },
			},
			want: deleted(lasting, in("namespaces"), func(f *attribution.Fact) { f.Namespace = "" }),
		},
		"delete": {
			changes: []func(*admissionv1.AdmissionRequest){deletion, options(`{"propagationPolicy":"Background"}`)}, want: deleted(),
		},
		"delete without options": {changes: []func(*admissionv1.AdmissionRequest){deletion}, want: deleted()},
		"delete in a collection": {
			changes: []func(*admissionv1.AdmissionRequest){deletion, func(r *admissionv1.AdmissionRequest) { r.Name = "" }}, want: deleted(),
		},
		"delete a pod": {
			changes: []func(*admissionv1.AdmissionRequest){deletion, resource("", "pods", "")}, want: deleted(lasting, in("pods")),
		},
		"delete in the foreground": {
			changes: []func(*admissionv1.AdmissionRequest){deletion, options(`{"propagationPolicy":"Foreground"}`)}, want: deleted(lasting),
		},
		"delete and orphan": {
			changes: []func(*admissionv1.AdmissionRequest){deletion, options(`{"orphanDependents":true}`)}, want: deleted(lasting),
		},
		"delete what has finalizers": {
			changes: []func(*admissionv1.AdmissionRequest){
				set(admissionv1.Delete, "", `{"metadata":{"name":"settings","uid":"u1","resourceVersion":"42","finalizers":["x.org/y"]}}`),
			},
			want: deleted(lasting),
		},
		"scale": {
			changes: []func(*admissionv1.AdmissionRequest){
				resource("apps", "deployments", "scale"), set(admissionv1.Update, scale(`{"replicas":3}`), scale(`{"replicas":1}`)),
			},
			want: scaled(3),
		},
		"scale to nothing": {
			changes: []func(*admissionv1.AdmissionRequest){
				resource("apps", "deployments", "scale"), set(admissionv1.Update, scale(`{}`), scale(`{"replicas":1}`)),
			},
			want: scaled(0),
		},
		"scale to the current number": {
			changes: []func(*admissionv1.AdmissionRequest){
				resource("apps", "deployments", "scale"), set(admissionv1.Update, scale(`{"replicas":3}`), scale(`{"replicas":3}`)),
			},
		},
		"email": {
			changes: []func(*admissionv1.AdmissionRequest){func(r *admissionv1.AdmissionRequest) {
				r.UserInfo.Extra = map[string]authenticationv1.ExtraValue{"x.org/email": {"jane@x.org"}}
			}},
			want: proposed(func(f *attribution.Fact) { f.Actor.Email = "jane@x.org" }),
		},
		"dry run":    {changes: []func(*admissionv1.AdmissionRequest){func(r *admissionv1.AdmissionRequest) { r.DryRun = new(true) }}},
		"status":     {changes: []func(*admissionv1.AdmissionRequest){resource("", "configmaps", "status")}},
		"eviction":   {changes: []func(*admissionv1.AdmissionRequest){resource("", "pods", "eviction"), set(admissionv1.Create, `{}`, "")}},
		"connection": {changes: []func(*admissionv1.AdmissionRequest){set(admissionv1.Connect, `{}`, "")}},
		"in progress": {
			changes: []func(*admissionv1.AdmissionRequest){func(r *admissionv1.AdmissionRequest) { r.DryRun = new(false) }}, want: proposed(),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := FactOfReview(review(tt.changes...), begun, hash)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(attribution.Fact{}, "ID")); diff != "" {
				t.Errorf("fact (-want +got):\n%s", diff)
			}
			if got != nil && len(got.ID) != 2*idSize {
				t.Errorf("ID = %q", got.ID)
			}
		})
	}
}

// TestContentOfAnotherVersion checks that an object in another version than the mirrored one has another hash. Its author
// is then unknown rather than wrong.
func TestContentOfAnotherVersion(t *testing.T) {
	content := func(version string) string {
		object := `{"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/` + version +
			`","metadata":{"name":"settings","uid":"u1"},"spec":{"maxReplicas":3}}`
		fact, err := FactOfReview(review(func(r *admissionv1.AdmissionRequest) { r.Object.Raw = []byte(object) }), begun, hash)
		if err != nil {
			t.Fatal(err)
		}
		return fact.Content
	}
	if content("v1") == content("v2") {
		t.Error("two versions have the same hash")
	}
}

func TestUnreadableReviews(t *testing.T) {
	raw := func(object, old string) func(*admissionv1.AdmissionRequest) {
		return func(r *admissionv1.AdmissionRequest) { r.Object.Raw, r.OldObject.Raw = []byte(object), []byte(old) }
	}
	for name, review := range map[string]*admissionv1.AdmissionReview{
		"no request":           {},
		"no user":              review(func(r *admissionv1.AdmissionRequest) { r.UserInfo.Username = "" }),
		"no object":            review(raw("", oldConfigMap)),
		"no old object":        review(raw(newConfigMap, "")),
		"an object of no kind": review(raw(`{"metadata":{"name":"a","uid":"b"}}`, oldConfigMap)),
		"a Secret of no kind":  review(raw(`{"metadata":{"name":"a","uid":"b"},"data":{"password":"aHVudGVyMg=="}}`, oldConfigMap)),
		"a Secret of wrong types": review(
			raw(`{"kind":"Secret","apiVersion":"v1","metadata":"aHVudGVyMg","data":"aHVudGVyMg"}`, oldConfigMap)),
		"a Secret that ends early":     review(raw(`{"kind":"Secret","apiVersion":"v1","data":{"password":"aHVudGVyMg`, oldConfigMap)),
		"an old Secret of wrong types": review(raw(newConfigMap, `{"kind":"Secret","apiVersion":"v1","metadata":{"finalizers":"aHVudGVyMg"}}`)),
		"no uid":                       review(raw(`{"kind":"A","apiVersion":"v1","metadata":{"name":"a"}}`, oldConfigMap)),
		"no scale": review(raw("", oldConfigMap), func(r *admissionv1.AdmissionRequest) {
			r.SubResource = "scale"
		}),
		"invalid options": review(func(r *admissionv1.AdmissionRequest) {
			r.Operation, r.Options.Raw = admissionv1.Delete, []byte(`7`)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			fact, err := FactOfReview(review, begun, hash)
			if err == nil || fact != nil {
				t.Fatalf("fact = %v, error = %v", fact, err)
			}
			if strings.Contains(err.Error(), "aHVudGVyMg") {
				t.Errorf("error contains content of the object: %v", err)
			}
		})
	}
}
