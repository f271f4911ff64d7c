// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package past_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

// changeOf returns a Change of an object of namespace shop with the contents before and after; empty for none.
func changeOf(resource, commit, before, after string) *v1alpha1.Change {
	kind, name := "ConfigMap", "web"
	if resource == "secrets" {
		kind, name = "Secret", "database"
	}
	blob := func(content string) string {
		if content == "" {
			return ""
		}
		return gitrepo.BlobHash([]byte(content)).String()
	}
	return &v1alpha1.Change{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "change"},
		Spec: v1alpha1.ChangeSpec{
			Object: v1alpha1.ChangedObject{APIVersion: "v1", Kind: kind, Resource: resource, Namespace: "shop", Name: name},
			Commits: []v1alpha1.ChangeCommit{{
				DestinationRef: v1alpha1.NamespacedObjectReference{Namespace: "shop", Name: "main"}, SHA: commit,
				BlobBefore: blob(before), BlobAfter: blob(after),
			}},
		},
	}
}

// formatted returns the fields of a diff, each as field change before after.
func formatted(out *v1alpha1.ChangeDiff) string {
	var lines []string
	for _, field := range out.Fields {
		text := []string{field.Field, string(field.ChangeType)}
		for _, value := range []*string{field.Before, field.After} {
			if value != nil {
				text = append(text, *value)
			}
		}
		if field.Hidden {
			text = append(text, "hidden")
		}
		lines = append(lines, strings.Join(text, " "))
	}
	return strings.Join(lines, "\n")
}

func TestDiff(t *testing.T) {
	f := newFixture(t)
	at := path(t, "", "configmaps", "shop", "web")
	red, blue := configMaps(t, "shop/web=red")[at], configMaps(t, "shop/web=blue")[at]+"  more: \"1\"\n"
	f.commit(owned(map[string]string{at: red}))
	commit := f.commit(map[string]string{at: blue})
	for name, test := range map[string]struct{ before, after, want string }{
		"Update": {red, blue, "/data/color Changed \"red\" \"blue\"\n/data/more Added \"1\"\n/metadata/labels/color Changed \"red\" \"blue\""},
		"Create": {"", blue, ""}, "Delete": {red, "", ""}, "Nothing": {red, red, ""},
	} {
		for _, cached := range []string{"", ", cached"} {
			out, err := f.Diff(t.Context(), changeOf("configmaps", commit, test.before, test.after))
			if err != nil {
				t.Fatal(err)
			}
			if got := formatted(out); got != test.want || (out.Before == nil) != (test.before == "") || (out.After == nil) != (test.after == "") {
				t.Errorf("%s%s: got\n%s\nwant\n%s", name, cached, got, test.want)
			}
			if out.Name != "change" || out.Namespace != "shop" || out.Object.Name != "web" {
				t.Errorf("%+v", out)
			}
		}
		clear(f.contents.held)
	}
}

func TestDiffOfSecrets(t *testing.T) {
	before, after := secret(password), secret(password)
	after.Object["data"] = map[string]any{"password": "b3RoZXI=", "user": "YWRtaW4=", "token": "bmV3"}
	after.SetLabels(map[string]string{"app": "api"})
	const perKey = "/data/password Changed hidden\n/data/token Added hidden\n/metadata/labels/app Changed \"web\" \"api\""
	for name, test := range map[string]struct {
		encrypted, key bool
		want           string
	}{
		"as they are":          {want: perKey},
		"encrypted":            {encrypted: true, key: true, want: perKey},
		"encrypted for others": {encrypted: true, want: "/data/token Added hidden\n/metadata/labels/app Changed \"web\" \"api\"\n/data Changed hidden"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if test.key {
				f.holdKey()
			}
			content := func(o *unstructured.Unstructured) string {
				if test.encrypted {
					return f.encrypted(o)
				}
				return plain(t, o)
			}
			at := path(t, "", "secrets", "shop", "database")
			f.commit(owned(map[string]string{at: content(before)}))
			commit := f.commit(map[string]string{at: content(after)})
			out, err := f.Diff(t.Context(), changeOf("secrets", commit, content(before), content(after)))
			if err != nil {
				t.Fatal(err)
			}
			if got := formatted(out); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
			text, err := json.Marshal(out)
			if err != nil {
				t.Fatal(err)
			}
			for _, value := range []string{password, "b3RoZXI=", "YWRtaW4=", "bmV3", "annotated"} {
				if strings.Contains(string(text), value) {
					t.Errorf("the diff shows %s: %s", value, text)
				}
			}
		})
	}
}

// TestDiffOfAnotherObject names blobs of other objects in a Change.
func TestDiffOfAnotherObject(t *testing.T) {
	f := newFixture(t)
	at := path(t, "", "configmaps", "shop", "web")
	mine := configMaps(t, "shop/web=red")[at]
	for name, other := range map[string]string{
		"a Secret":          plain(t, secret(password)),
		"another name":      strings.Replace(mine, "name: web", "name: other", 1),
		"another namespace": strings.Replace(mine, "namespace: shop", "namespace: hidden", 1),
		"no namespace":      strings.Replace(mine, "  namespace: shop\n", "", 1),
		"another kind":      strings.Replace(mine, "ConfigMap", "Secret", 1),
		"another group":     strings.Replace(mine, "apiVersion: v1", "apiVersion: apps/v1", 1),
	} {
		commit := f.commit(owned(map[string]string{at: mine, baseFolder + "/other": other}))
		for _, change := range []*v1alpha1.Change{
			changeOf("configmaps", commit, mine, other), changeOf("configmaps", commit, other, mine), changeOf("configmaps", commit, "", other),
		} {
			out, err := f.Diff(t.Context(), change)
			if out != nil {
				t.Errorf("%s: %+v", name, out)
			}
			wantReason(t, err, metav1.StatusReasonConflict, "not the object of the Change")
		}
	}
	// A Change of a type that is not Secrets hides nothing, so it must not show one.
	file := plain(t, secret(password))
	change := changeOf("secrets", f.commit(map[string]string{baseFolder + "/other": file}), "", file)
	change.Spec.Object.Resource = "configmaps"
	_, err := f.Diff(t.Context(), change)
	wantReason(t, err, metav1.StatusReasonConflict, "not the object of the Change")
}

func TestDiffOfSeveralDestinations(t *testing.T) {
	f := newFixture(t)
	at := path(t, "", "configmaps", "shop", "web")
	red := configMaps(t, "shop/web=red")[at]
	commit := f.commit(owned(map[string]string{at: red}))
	change := changeOf("configmaps", commit, "", red)
	deleted := change.Spec.Commits[0]
	deleted.DestinationRef.Name = "deleted"
	change.Spec.Commits = []v1alpha1.ChangeCommit{deleted, change.Spec.Commits[0]}
	if out, err := f.Diff(t.Context(), change); err != nil || out.After == nil {
		t.Errorf("%+v, %v", out, err)
	}
	clear(f.contents.held)
	change.Spec.Commits = change.Spec.Commits[:1]
	_, err := f.Diff(t.Context(), change)
	wantReason(t, err, metav1.StatusReasonConflict, "GitDestination shop/deleted no longer exists")
	_, err = f.Diff(t.Context(), changeOf("configmaps", commit, "", "content that is not there"))
	wantReason(t, err, metav1.StatusReasonConflict, "does not have the content")
	change.Spec.Commits = nil
	_, err = f.Diff(t.Context(), change)
	wantReason(t, err, metav1.StatusReasonConflict, "names no commit")
}

// TestContentThatIsGone reads a Change whose content is not in the repository. It does not look for it again for a while.
func TestContentThatIsGone(t *testing.T) {
	f := newFixture(t)
	at := path(t, "", "configmaps", "shop", "web")
	red := configMaps(t, "shop/web=red")[at]
	change := changeOf("configmaps", f.commit(owned(nil)), "", red)
	_, err := f.Diff(t.Context(), change)
	wantReason(t, err, metav1.StatusReasonConflict, "does not have the content")
	f.commit(map[string]string{at: red})
	_, err = f.Diff(t.Context(), change)
	wantReason(t, err, metav1.StatusReasonConflict, "does not have the content")
	f.clock.SetTime(noon.Add(5*time.Minute + time.Second))
	if out, err := f.Diff(t.Context(), change); err != nil || out.After == nil {
		t.Errorf("%+v, %v", out, err)
	}
}

// TestDiffWithoutKind reads a Change of an object of which only the file was known.
func TestDiffWithoutKind(t *testing.T) {
	f := newFixture(t)
	at := path(t, "", "configmaps", "shop", "web")
	red := configMaps(t, "shop/web=red")[at]
	change := changeOf("configmaps", f.commit(owned(map[string]string{at: red})), red, "")
	change.Spec.Object.Kind = ""
	if out, err := f.Diff(t.Context(), change); err != nil || out.Before == nil {
		t.Errorf("%+v, %v", out, err)
	}
}

// TestIgnored returns the ignore rules of the destination, for a change only those for its object.
func TestIgnored(t *testing.T) {
	f := newFixture(t)
	rules := []v1alpha1.IgnoreRule{
		{Fields: []string{"/data/a"}}, {Target: v1alpha1.IgnoreTarget{Group: new(""), Kind: "ConfigMap", Name: "web"}, Managers: []string{"scaler"}},
		{Target: v1alpha1.IgnoreTarget{Group: new("apps")}, Fields: []string{"/data/b"}},
		{Target: v1alpha1.IgnoreTarget{Kind: "Secret"}, Fields: []string{"/data/c"}},
		{Target: v1alpha1.IgnoreTarget{Name: "other"}, Fields: []string{"/data/d"}},
	}
	f.destination.Spec.Ignore = rules
	if _, err := f.api.ConfigbutlerV1alpha1().GitDestinations("shop").Update(t.Context(), f.destination, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	files := configMaps(t, "shop/web=red")
	commit := f.commit(owned(files))
	list, err := f.read(all, v1alpha1.ManifestOptions{Namespace: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	if difference := cmp.Diff(rules, list.Ignore); difference != "" {
		t.Errorf("objects (-want +got)\n%s", difference)
	}
	change := changeOf("configmaps", commit, "", files[path(t, "", "configmaps", "shop", "web")])
	change.Spec.Object.Kind = "ConfigMap"
	out, err := f.Diff(t.Context(), change)
	if err != nil {
		t.Fatal(err)
	}
	if difference := cmp.Diff(rules[:2], out.Ignore); difference != "" {
		t.Errorf("diff (-want +got)\n%s", difference)
	}
	if err := f.api.ConfigbutlerV1alpha1().GitDestinations("shop").Delete(t.Context(), "main", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if out, err := f.Diff(t.Context(), change); err != nil || out.Ignore != nil {
		t.Errorf("without the destination: %v, %v", out.Ignore, err)
	}
}
