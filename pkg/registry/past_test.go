// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	auditapi "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/registry"
)

// pastStub records what it is asked for.
type pastStub struct {
	changes  []string
	options  []v1alpha1.ManifestOptions
	mayRead  bool
	received *v1alpha1.GitDestination
}

func (p *pastStub) Diff(_ context.Context, change *v1alpha1.Change) (*v1alpha1.ChangeDiff, error) {
	p.changes = append(p.changes, change.Namespace+"/"+change.Name)
	return &v1alpha1.ChangeDiff{
		ObjectMeta: metav1.ObjectMeta{Name: change.Name}, After: &runtime.RawExtension{Raw: []byte(`{"kind":"Deployment"}`)},
		Fields: []v1alpha1.FieldDifference{{Field: "/spec/replicas", ChangeType: v1alpha1.ChangeAdded, After: new("3")}},
	}, nil
}

func (p *pastStub) Objects(
	ctx context.Context, destination *v1alpha1.GitDestination, options *v1alpha1.ManifestOptions, reader *access.Reader,
) (*v1alpha1.ManifestList, error) {
	p.received, p.options = destination, append(p.options, *options)
	var err error
	p.mayRead, err = reader.May(ctx, "get", schema.GroupResource{Group: "apps", Resource: "deployments"}, namespace, "")
	return &v1alpha1.ManifestList{
		Commit: &v1alpha1.ManifestCommit{SHA: "abc"}, Omitted: 2, Unreadable: []string{"file"},
		Items: []runtime.RawExtension{{Raw: []byte(`{"kind":"Deployment"}`)}},
	}, err
}

// pastStorage has Changes of a Deployment and a Secret, with commits of the destination dest.
func pastStorage(t *testing.T, past registry.Past, decides authorizer.AuthorizerFunc) *registry.Storage {
	t.Helper()
	storage := newStorage(t, func(c *registry.Config) {
		c.Authorizer = decides
		if past != nil {
			c.Past = past
		}
	})
	create(t, storage, "gitdestinations", destination())
	for _, change := range []*v1alpha1.Change{changeOf("a", "apps/v1", "deployments"), changeOf("b", "v1", "secrets"), changeOf("c", "apps/v1", "deployments")} {
		name := "dest"
		if change.Name == "c" {
			name = "another"
		}
		change.Spec.Commits = []v1alpha1.ChangeCommit{{
			DestinationRef: v1alpha1.NamespacedObjectReference{Namespace: namespace, Name: name}, SHA: "0123456" + change.Name, Path: "x",
		}}
		if _, err := storage.Records.Write(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
	return storage
}

func TestChangeDiff(t *testing.T) {
	decides, past := &readers{}, &pastStub{}
	storage := pastStorage(t, past, decides.Authorize)
	endpoint := storage.Endpoints["changes/diff"].(rest.Getter)
	for _, name := range []string{"b", "none"} {
		if _, err := endpoint.Get(as(t, "deployments"), name, &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("diff of %s: error %v, want NotFound", name, err)
		}
	}
	if _, err := endpoint.Get(in(t), "a", &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("diff without a user: error %v, want NotFound", err)
	}
	if len(past.changes) != 0 {
		t.Fatalf("read %v", past.changes)
	}
	obj, err := endpoint.Get(as(t, "deployments"), "a", &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	diff := obj.(*configbutler.ChangeDiff)
	if diff.Name != "a" || len(diff.Fields) != 1 || *diff.Fields[0].After != "3" || string(diff.After.Raw) != `{"kind":"Deployment"}` || past.changes[0] != "shop/a" {
		t.Errorf("%+v, read %v", diff, past.changes)
	}
}

// changeReaders allows what readers does, and get on Changes to all users but those whose name begins with "no".
func changeReaders(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetResource() == "changes" && a.GetVerb() == "get" && a.GetNamespace() == namespace && !strings.HasPrefix(a.GetUser().GetName(), "no") {
		return authorizer.DecisionAllow, "", nil
	}
	return (&readers{}).Authorize(ctx, a)
}

func TestPastObjects(t *testing.T) {
	past := &pastStub{}
	storage := pastStorage(t, past, changeReaders)
	endpoint := storage.Endpoints["gitdestinations/objects"].(rest.GetterWithOptions)
	get := func(user, name string, options configbutler.ManifestOptions) (*configbutler.ManifestList, error) {
		obj, err := endpoint.Get(as(t, user), name, &options)
		if err != nil {
			return nil, err
		}
		return obj.(*configbutler.ManifestList), nil
	}
	if _, err := get("deployments", "none", configbutler.ManifestOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("destination that does not exist: error %v", err)
	}
	for at, want := range map[string]string{"": "", "24h": "24h", "shop/a": "0123456a", "shop/a^": "0123456a^", "abcdef0^": "abcdef0^"} {
		list, err := get("deployments", "dest", configbutler.ManifestOptions{At: at, Resource: "pods", Limit: 7})
		if err != nil {
			t.Fatal(err)
		}
		if got := past.options[len(past.options)-1]; got.At != want || got.Resource != "pods" || got.Limit != 7 || !past.mayRead {
			t.Errorf("at %q: asked for %+v, want %q", at, got, want)
		}
		if list.Commit.SHA != "abc" || list.Omitted != 2 || len(list.Unreadable) != 1 || string(list.Items[0].Raw) != `{"kind":"Deployment"}` ||
			past.received.Name != "dest" {
			t.Errorf("%+v", list)
		}
	}
	if _, err := get("secrets", "dest", configbutler.ManifestOptions{}); err != nil || past.mayRead {
		t.Errorf("a user who may not read Deployments: %v, %v", past.mayRead, err)
	}
	asked := len(past.options)
	const hidden = "does not exist, or you may not get it or its object"
	for _, test := range []struct{ user, at, want string }{
		{"deployments", "shop/b", hidden}, {"deployments", "shop/none", hidden}, {"deployments", "other/a", hidden}, {"deployments", "/a", hidden},
		{"deployments", "shop/", hidden}, {"deployments", "shop/a/b", hidden}, {"deployments", "shop/../a", hidden}, {"deployments", "shop/a^^", hidden},
		{"no+deployments", "shop/a", hidden}, {"deployments", "shop/c", "has no commit of GitDestination shop/dest"},
		{"deployments", "shop/" + strings.Repeat("a", 1<<16), "longer than 512 bytes"},
	} {
		_, err := get(test.user, "dest", configbutler.ManifestOptions{At: test.at})
		if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s at %.30s: error %v, want BadRequest with %q", test.user, test.at, err, test.want)
		}
	}
	if len(past.options) != asked {
		t.Errorf("read %+v", past.options[asked:])
	}
}

func TestDecryptedSecretsAreAudited(t *testing.T) {
	storage := pastStorage(t, &pastStub{}, changeReaders)
	endpoint := storage.Endpoints["gitdestinations/objects"].(rest.GetterWithOptions)
	for secrets, want := range map[string]string{"": "", v1alpha1.SecretsMasked: "", v1alpha1.SecretsDecrypted: v1alpha1.SecretsDecrypted} {
		ctx := audit.WithAuditContext(as(t, "deployments"))
		if err := audit.AuditContextFrom(ctx).Init(audit.RequestAuditConfig{Level: auditapi.LevelMetadata}, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := endpoint.Get(ctx, "dest", &configbutler.ManifestOptions{Secrets: secrets}); err != nil {
			t.Fatal(err)
		}
		got, _ := audit.AuditContextFrom(ctx).GetEventAnnotation("configbutler.ai/past-secrets")
		if got != want {
			t.Errorf("secrets=%s: audit annotation %q, want %q", secrets, got, want)
		}
	}
}

func TestServerWithoutPast(t *testing.T) {
	storage := pastStorage(t, nil, changeReaders)
	_, diffError := storage.Endpoints["changes/diff"].(rest.Getter).Get(as(t, "deployments"), "a", &metav1.GetOptions{})
	_, objectsError := storage.Endpoints["gitdestinations/objects"].(rest.GetterWithOptions).Get(as(t, "deployments"), "dest", &configbutler.ManifestOptions{})
	for _, err := range []error{diffError, objectsError} {
		if !apierrors.IsServiceUnavailable(err) {
			t.Errorf("error %v, want ServiceUnavailable", err)
		}
	}
}
