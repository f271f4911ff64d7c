// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package past_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

func TestMoments(t *testing.T) {
	f := newFixture(t)
	before := f.commit(map[string]string{"README.md": "nothing of the mirror"})
	red := f.commit(owned(configMaps(t, "shop/web=red")))
	blue := f.commit(configMaps(t, "shop/web=blue"))
	f.commit(map[string]string{"README.md": "another"})
	tip := f.commit(configMaps(t, "shop/web=green"))
	for at, want := range map[string]string{
		"": "green", tip: "green", red: "red", blue[:7]: "blue", strings.ToUpper(blue): "blue", blue + "^": "red", "0s": "green",
		"2026-05-04T12:00:00Z": "green", "2026-05-04T06:30:00Z": "green", "2026-05-04T05:59:59Z": "blue", "2026-05-04T05:30:00+01:00": "blue",
		"2026-05-04T06:00:00Z": "green", "2026-05-04T06:00:00.5Z": "blue", "2026-05-04T06:00:01Z": "green", "2026-05-04T06:00:01.000001Z": "green",
		"2026-05-04T03:00:00Z": "red", "8h30m": "red", "6h": "green", "9000000000ns": "green", "2099-01-01T00:00:00Z": "green",
	} {
		if got, err := f.colors(all, v1alpha1.ManifestOptions{At: at}); got != "shop/web="+want {
			t.Errorf("at %q: %q, %v; want %s", at, got, err, want)
		}
	}
	for at, want := range map[string]string{
		"10h0m1s": "before the first commit of the branch main; available are the states from " + before[:12] + " (2026-05-04T02:00:00Z)",
		before:    "the folder of the destination did not exist in the commit " + before[:12],
		"9h30m":   "available are the states from " + red[:12] + " (2026-05-04T03:00:00Z)",
		red + "^": "did not exist", before + "^": "nothing is before the first commit",
		"0123456789": "the history of the branch main has no commit 0123456789, or no longer has it; available are",
		"-1h":        "is not a time", "yesterday": "is not a time", "abcdef": "is not a time", "^": "is not a time", "2026-05-04": "is not a time",
		"a/b": "is not a time", strings.Repeat("9", 1<<20): "longer than", "main": "is not a time", "HEAD~1": "is not a time", "refs/heads/main": "is not",
	} {
		_, err := f.colors(all, v1alpha1.ManifestOptions{At: at})
		wantReason(t, err, metav1.StatusReasonBadRequest, want)
	}
	f.git(f.repository, "update-ref", "refs/heads/main", blue)
	_, err := f.colors(all, v1alpha1.ManifestOptions{At: tip})
	wantReason(t, err, metav1.StatusReasonBadRequest, "no longer has it")
	if got, err := f.colors(all, v1alpha1.ManifestOptions{}); got != "shop/web=blue" {
		t.Errorf("after history was rewritten: %q, %v", got, err)
	}
}

// TestForgedTimes reads at times of a branch whose commits have times that cannot be.
func TestForgedTimes(t *testing.T) {
	f := newFixture(t)
	commit := func(color string, ago time.Duration) {
		t.Helper()
		f.commitAt(noon.Add(-ago), owned(configMaps(t, "shop/web="+color)))
	}
	commit("future", -time.Hour)
	commit("first", 10*time.Hour)
	commit("second", 8*time.Hour)
	commit("old", 1000*time.Hour)
	commit("later", -1000*time.Hour)
	commit("third", 2*time.Hour)
	commit("oldest", 2000*time.Hour)
	for at, want := range map[string]string{
		"10h": "first", "9h": "first", "8h": "later", "3h": "later", "2h": "oldest", "0s": "oldest", "2099-01-01T00:00:00Z": "oldest",
	} {
		if got, err := f.colors(all, v1alpha1.ManifestOptions{At: at}); got != "shop/web="+want {
			t.Errorf("at %s: %q, %v; want %s", at, got, err, want)
		}
	}
	for _, at := range []string{"11h", "999h", "1500h"} {
		_, err := f.colors(all, v1alpha1.ManifestOptions{At: at})
		wantReason(t, err, metav1.StatusReasonBadRequest, "before the first commit")
	}
}

func TestEmptyBranch(t *testing.T) {
	f := newFixture(t)
	_, err := f.read(all, v1alpha1.ManifestOptions{})
	wantReason(t, err, metav1.StatusReasonConflict, "has not written its folder yet")
}

// TestRights reads as users with different rights. Nothing about other objects may be in the response or in the error.
func TestRights(t *testing.T) {
	f := newFixture(t)
	role := "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: Admin\n"
	files := owned(configMaps(t, "shop/api=red", "shop/web=blue", "hidden/web=green", "hidden/other=green"))
	files[path(t, "rbac.authorization.k8s.io", "clusterroles", "", "Admin")] = role
	files[path(t, "", "secrets", "shop", "database")] = plain(t, secret("cGFzcw=="))
	f.commit(files)
	cm, hidden := v1alpha1.ManifestOptions{Resource: "configmaps"}, v1alpha1.ManifestOptions{Resource: "configmaps", Namespace: "hidden"}
	named := func(namespace, name string) v1alpha1.ManifestOptions {
		return v1alpha1.ManifestOptions{Resource: "configmaps", Namespace: namespace, Name: name}
	}
	shop := rights{"list configmaps shop"}
	for _, test := range []struct {
		rights  rights
		options v1alpha1.ManifestOptions
		want    string
		omitted int32
	}{
		{all, v1alpha1.ManifestOptions{}, "hidden/other=green hidden/web=green shop/api=red shop/web=blue shop/database= /Admin=", 0},
		{all, cm, "hidden/other=green hidden/web=green shop/api=red shop/web=blue", 0},
		{all, v1alpha1.ManifestOptions{Resource: "clusterroles.rbac.authorization.k8s.io", Name: "Admin"}, "/Admin=", 0},
		{all, v1alpha1.ManifestOptions{Resource: "clusterroles.rbac.authorization.k8s.io", Name: "admin"}, "", 0},
		{all, v1alpha1.ManifestOptions{Resource: "clusterroles"}, "", 0},
		{all, v1alpha1.ManifestOptions{LabelSelector: "color in (red, green)", Namespace: "shop"}, "shop/api=red", 0},
		{shop, v1alpha1.ManifestOptions{}, "shop/api=red shop/web=blue", 1},
		{shop, cm, "shop/api=red shop/web=blue", 0},
		{shop, v1alpha1.ManifestOptions{LabelSelector: "color=red"}, "shop/api=red", 1},
		{shop, v1alpha1.ManifestOptions{Namespace: "shop"}, "shop/api=red shop/web=blue", 1},
		// These do not show whether the namespace or the object existed.
		{shop, v1alpha1.ManifestOptions{Namespace: "hidden"}, "", 0},
		{shop, v1alpha1.ManifestOptions{Namespace: "none"}, "", 0},
		{rights{"get configmaps shop"}, v1alpha1.ManifestOptions{Resource: "configmaps", Name: "web"}, "shop/web=blue", 0},
		{rights{"get configmaps shop/web"}, named("shop", "web"), "shop/web=blue", 0},
		{rights{"get configmaps shop"}, named("shop", "none"), "", 0},
		{rights{"list configmaps "}, cm, "hidden/other=green hidden/web=green shop/api=red shop/web=blue", 0},
		{rights{"list clusterroles "}, v1alpha1.ManifestOptions{}, "/Admin=", 0},
		{nil, v1alpha1.ManifestOptions{}, "", 0},
	} {
		list, err := f.read(test.rights, test.options)
		if err != nil {
			t.Errorf("%v read %+v: %v", test.rights, test.options, err)
			continue
		}
		if got := strings.Join(described(t, list), " "); got != test.want || list.Omitted != test.omitted || list.Continue != "" {
			t.Errorf("%v read %+v: got %q, %d omitted; want %q, %d", test.rights, test.options, got, list.Omitted, test.want, test.omitted)
		}
	}
	for _, options := range []v1alpha1.ManifestOptions{hidden, named("hidden", "web"), named("hidden", "none"), {Resource: "configmaps", Namespace: "none"}} {
		_, err := f.read(shop, options)
		wantReason(t, err, metav1.StatusReasonForbidden, `"jane" cannot`)
		if strings.Contains(fmt.Sprint(err), "green") {
			t.Errorf("%+v: %v", options, err)
		}
	}
	_, err := f.read(rights{"list configmaps shop"}, named("shop", "web"))
	wantReason(t, err, metav1.StatusReasonForbidden, "cannot get configmaps")
	_, err = f.read(rights{"fails"}, v1alpha1.ManifestOptions{})
	wantReason(t, err, metav1.StatusReasonInternalError, "")
	list, err := f.Objects(t.Context(), f.destination, &v1alpha1.ManifestOptions{}, rights(nil).reader())
	if err != nil || len(list.Items) != 0 || list.Omitted != 0 {
		t.Errorf("without rights: %+v, %v", list, err)
	}
}

func TestHostileOptions(t *testing.T) {
	f := newFixture(t)
	f.commit(owned(configMaps(t, "shop/web=red")))
	token := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	const after = "core/v1/configmaps/shop/web.yaml"
	for want, cases := range map[string][]v1alpha1.ManifestOptions{
		"resource: must be the plural": {
			{Resource: "../../etc"}, {Resource: "a/b"}, {Resource: "Pods"}, {Resource: "pods.core"}, {Resource: "."}, {Resource: "pods.-"},
			{Resource: strings.Repeat("a", 1<<20)}, {Resource: "*"}, {Resource: "\x00"},
		},
		"namespace: must be the name": {{Namespace: ".."}, {Namespace: "a/b"}, {Namespace: "A"}, {Namespace: strings.Repeat("a", 1<<20)}},
		"name: needs resource":        {{Name: "web"}},
		"name: must be the name": {
			{Resource: "configmaps", Name: "../web"}, {Resource: "configmaps", Name: ".."}, {Resource: "configmaps", Name: "\xff"},
		},
		"labelSelector:":           {{LabelSelector: "a=b=c"}, {LabelSelector: strings.Repeat("a,", 1<<20)}, {LabelSelector: "!"}},
		"limit: must be between 0": {{Limit: -1}, {Limit: 5001}, {Limit: 1 << 62}},
		"secrets: must be":         {{Secrets: "decrypted"}, {Secrets: "Plain"}},
		"continue: not a token": {
			{Continue: "x"}, {Continue: token("{}")}, {Continue: token(`{"commit":"zz","after":"` + after + `"}`)}, {Continue: token(`{"after":"` + after + `"}`)},
			{Continue: token(`{"commit":"0123456789012345678901234567890123456789","after":"../web"}`)}, {Continue: strings.Repeat("e", 1<<20)},
		},
	} {
		for _, options := range cases {
			_, err := f.read(all, options)
			wantReason(t, err, metav1.StatusReasonBadRequest, want)
		}
	}
	_, err := f.read(all, v1alpha1.ManifestOptions{Continue: token(`{"commit":"0123456789012345678901234567890123456789","after":"` + after + `"}`)})
	wantReason(t, err, metav1.StatusReasonExpired, "begin again without the token")
	tip := f.git(f.repository, "rev-parse", "main")
	if got, err := f.colors(all, v1alpha1.ManifestOptions{Continue: token(`{"commit":"` + tip + `","after":"` + after + `"}`)}); got != "" || err != nil {
		t.Errorf("token behind the last file: %q, %v", got, err)
	}
}

// TestPaging reads pages while the branch moves. All are of one commit.
func TestPaging(t *testing.T) {
	f := newFixture(t)
	var want []string
	files := owned(nil)
	for i := range 10 {
		web := fmt.Sprintf("shop/web-%d=red", i)
		want = append(want, web)
		for _, each := range []string{web, fmt.Sprintf("hidden/secret-name-%d=red", i)} {
			for path, content := range configMaps(t, each) {
				files[path] = content
			}
		}
	}
	files[path(t, "", "secrets", "shop", "database")] = plain(t, secret(password))
	f.commit(files)
	for _, options := range []v1alpha1.ManifestOptions{{Limit: 3}, {Limit: 1, LabelSelector: "color=red"}, {Limit: 4, Resource: "configmaps"}} {
		wantOmitted := int32(1)
		if options.Resource != "" {
			wantOmitted = 0
		}
		var got []string
		omitted, pages := int32(0), 0
		for {
			list, err := f.read(rights{"list configmaps shop"}, options)
			if err != nil {
				t.Fatal(err)
			}
			got, omitted = append(got, described(t, list)...), omitted+list.Omitted
			if pages++; len(list.Items) > int(options.Limit) || list.Continue == "" {
				break
			}
			if text, _ := base64.RawURLEncoding.DecodeString(list.Continue); strings.Contains(string(text), "hidden") {
				t.Errorf("token with a name: %s", text)
			}
			options.Continue = list.Continue
			f.commit(configMaps(t, "shop/web-9=changed"))
			f.commit(configMaps(t, "shop/web-9=red", "shop/web-a=red"))
			f.commit(map[string]string{path(t, "", "configmaps", "shop", "web-a"): ""})
		}
		if !slices.Equal(got, want) || omitted != wantOmitted || pages < 3 {
			t.Errorf("%+v: %d pages, %d omitted, objects %v", options, pages, omitted, got)
		}
	}
}

// TestManyHiddenNamespaces reads as a user who may read little among many namespaces. No token names the others.
func TestManyHiddenNamespaces(t *testing.T) {
	f := newFixture(t)
	objects := []string{"a/web=red", "z/web=blue"}
	for i := range 600 {
		objects = append(objects, fmt.Sprintf("hidden-%d/web=green", i))
	}
	f.commit(owned(configMaps(t, objects...)))
	r := rights{"list configmaps a", "list configmaps z"}
	list, err := f.read(r, v1alpha1.ManifestOptions{})
	if err != nil || len(list.Items) != 1 || list.Omitted != 0 {
		t.Fatalf("%+v, %v", list, err)
	}
	if token, _ := base64.RawURLEncoding.DecodeString(list.Continue); !strings.HasSuffix(string(token), `"after":"core/v1/configmaps/a/web.yaml"}`) {
		t.Errorf("token %s", token)
	}
	_, err = f.read(r, v1alpha1.ManifestOptions{Continue: list.Continue})
	wantReason(t, err, metav1.StatusReasonBadRequest, "name a namespace or a type")
	if got, err := f.colors(r, v1alpha1.ManifestOptions{Namespace: "z"}); got != "z/web=blue" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestTokensRevealNothing continues after paths of files that the caller may not read. Whether there is one makes no difference.
func TestTokensRevealNothing(t *testing.T) {
	f := newFixture(t)
	tip := f.commit(owned(configMaps(t, "hidden/web=green", "shop/web=red")))
	for _, guess := range []string{"hidden/web", "hidden/none"} {
		token := base64.RawURLEncoding.EncodeToString([]byte(`{"commit":"` + tip + `","after":"core/v1/configmaps/` + guess + `.yaml"}`))
		list, err := f.read(rights{"list configmaps shop"}, v1alpha1.ManifestOptions{Continue: token})
		if err != nil || len(list.Items) != 1 || list.Omitted != 0 {
			t.Errorf("%s: %+v, %v", guess, list, err)
		}
	}
}

func TestUnreadableFiles(t *testing.T) {
	f := newFixture(t)
	files := owned(configMaps(t, "shop/web=red"))
	good := files[path(t, "", "configmaps", "shop", "web")]
	var want []string
	// So many values that the parser's own guard would let them grow tenfold.
	bomb := strings.ReplaceAll(good, "web", "large-bomb") + "a: &a [" + strings.Repeat("x,", 200_000) + "x]\nb: [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
	for name, content := range map[string]string{
		"another-name": good, "text": "hello", "list": "- 1\n", "broken": "a: [", "no-kind": "apiVersion: v1\n", "twice": good + "---\n" + good,
		"a-secret":       strings.ReplaceAll(strings.ReplaceAll(good, "ConfigMap", "Secret"), "web", "a-secret"),
		"another-group":  strings.ReplaceAll(strings.ReplaceAll(good, "v1\n", "apps/v1\n"), "web", "another-group"),
		"in-another":     strings.ReplaceAll(strings.ReplaceAll(good, "shop", "other"), "web", "in-another"),
		"duplicate-keys": strings.ReplaceAll(good, "web", "duplicate-keys") + "data: {}\n",
		"bomb":           "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n",
		"anchor":         strings.ReplaceAll(good, "name: web", "name: &a anchor"),
		"alias":          strings.ReplaceAll(strings.ReplaceAll(good, "web", "alias"), "color: red\n", "color: &a red\n  more: *a\n"),
		"merge":          strings.ReplaceAll(strings.ReplaceAll(good, "web", "merge"), "data:\n", "data: &a\n") + "more:\n  <<: *a\n",
		"deep":           strings.ReplaceAll(good, "web", "deep") + "more: " + strings.Repeat("[", 500) + strings.Repeat("]", 500) + "\n",
		"large-bomb":     bomb,
		"large":          "data: " + strings.Repeat("x", gitrepo.MaxBlob) + "\n",
	} {
		at := path(t, "", "configmaps", "shop", name)
		files[at] = content
		want = append(want, at)
	}
	files[path(t, "", "configmaps", "hidden", "text")] = "hello"
	files[baseFolder+"/README.md"], files[baseFolder+"/core/v1/configmaps/shop/Web.yaml"] = "not of the mirror", good
	f.commit(files)
	slices.Sort(want)
	list, err := f.read(rights{"list configmaps shop"}, v1alpha1.ManifestOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := described(t, list); !slices.Equal(got, []string{"shop/web=red"}) || !slices.Equal(list.Unreadable, want) || list.Omitted != 0 {
		t.Errorf("objects %v, unreadable %v, %d omitted; want unreadable %v", got, list.Unreadable, list.Omitted, want)
	}
}

// TestFilesWithMarks reads a file with the characters of anchors and aliases in texts.
func TestFilesWithMarks(t *testing.T) {
	f := newFixture(t)
	files := configMaps(t, "shop/web=red")
	at := path(t, "", "configmaps", "shop", "web")
	files[at] += "  url: https://example.com/?a&b=*c\n  glob: '*a'\n  text: |\n    &a *b\n" + `  brackets: "\"[[{` + strings.Repeat("[", 1000) + "\"\n"
	f.commit(owned(files))
	if got, err := f.colors(all, v1alpha1.ManifestOptions{}); got != "shop/web=red" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestOwner reads through destinations that name the folder and have not written it.
func TestOwner(t *testing.T) {
	f := newFixture(t)
	f.commit(owned(configMaps(t, "shop/web=red")))
	other := newDestination("shop", "other")
	reads := func(d *v1alpha1.GitDestination) error {
		t.Helper()
		_, err := f.Objects(t.Context(), d, &v1alpha1.ManifestOptions{}, all.reader())
		return err
	}
	wantReason(t, reads(other), metav1.StatusReasonConflict, "another owner")
	around := f.destination.DeepCopy()
	around.Spec.BaseFolder = ""
	wantReason(t, reads(around), metav1.StatusReasonConflict, "another owner")
	elsewhere := newDestination("elsewhere", "main")
	wantReason(t, reads(elsewhere), metav1.StatusReasonServiceUnavailable, "its repository cannot be used")
	branch := f.destination.DeepCopy()
	branch.Spec.Branch = "secret"
	wantReason(t, reads(branch), metav1.StatusReasonServiceUnavailable, "its repository cannot be used")
	upwards := f.destination.DeepCopy()
	upwards.Spec.BaseFolder = "../other"
	wantReason(t, reads(upwards), metav1.StatusReasonServiceUnavailable, "its repository cannot be used")
	if err := reads(f.destination); err != nil {
		t.Error(err)
	}
	for name, changed := range map[string]string{
		"another cluster": "clusterUID: other", "another installation": "instance: system/other", "no marker": "",
	} {
		content := ""
		if field, _, found := strings.Cut(changed, ":"); found {
			for line := range strings.Lines(marker) {
				if strings.HasPrefix(line, field+":") {
					line = changed + "\n"
				}
				content += line
			}
		}
		f.commit(map[string]string{baseFolder + "/.configbutler/owner.yaml": content})
		t.Run(name, func(t *testing.T) { wantReason(t, reads(f.destination), metav1.StatusReasonConflict, "another owner") })
	}
}

// TestEarlierOwner reads what was in the folder before the destination owned it.
func TestEarlierOwner(t *testing.T) {
	f := newFixture(t)
	unmarked := f.commit(configMaps(t, "hidden/web=green"))
	files := configMaps(t, "hidden/web=red")
	files[baseFolder+"/.configbutler/owner.yaml"] = strings.Replace(marker, "name: main", "name: other", 1)
	other := f.commit(files)
	f.commit(map[string]string{"README.md": "in between"})
	mine := f.commit(owned(configMaps(t, "shop/web=red")))
	f.commit(configMaps(t, "shop/web=blue"))
	for _, at := range []string{unmarked, other, mine + "^", "8h"} {
		_, err := f.colors(all, v1alpha1.ManifestOptions{At: at})
		wantReason(t, err, metav1.StatusReasonBadRequest, "did not own its folder in the commit")
		wantReason(t, err, metav1.StatusReasonBadRequest, "available are the states from "+mine[:12])
	}
	token := base64.RawURLEncoding.EncodeToString([]byte(`{"commit":"` + other + `","after":"core/v1/configmaps/hidden/a.yaml"}`))
	_, err := f.colors(all, v1alpha1.ManifestOptions{Continue: token})
	wantReason(t, err, metav1.StatusReasonExpired, "")
	if got, err := f.colors(all, v1alpha1.ManifestOptions{At: mine}); got != "hidden/web=red shop/web=red" {
		t.Errorf("got %q, %v", got, err)
	}
	f.commit(files)
	for _, at := range []string{"", mine} {
		_, err = f.colors(all, v1alpha1.ManifestOptions{At: at})
		wantReason(t, err, metav1.StatusReasonConflict, "another owner")
	}
}

// TestContentsAreVerified reads through a cache with wrong contents.
func TestContentsAreVerified(t *testing.T) {
	f := newFixture(t)
	files := configMaps(t, "shop/web=red")
	f.commit(owned(files))
	hash := gitrepo.BlobHash([]byte(files[path(t, "", "configmaps", "shop", "web")]))
	f.contents.held[hash] = []byte(strings.Replace(files[path(t, "", "configmaps", "shop", "web")], "red", "forged", 1))
	for range 2 {
		if got, err := f.colors(all, v1alpha1.ManifestOptions{}); got != "shop/web=red" {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if gitrepo.BlobHash(f.contents.held[hash]) != hash {
		t.Error("the cache still has the wrong content")
	}
}

// TestLargeFilesOfTheCache reads large files that are all cached: more than a response takes.
func TestLargeFilesOfTheCache(t *testing.T) {
	f := newFixture(t)
	files := owned(nil)
	for i := range 12 {
		for at, content := range configMaps(t, fmt.Sprintf("shop/web-%02d=red", i)) {
			files[at] = content + "  large: " + strings.Repeat("x", gitrepo.MaxBlob-1000) + "\n"
			f.contents.held[gitrepo.BlobHash([]byte(files[at]))] = []byte(files[at])
		}
	}
	f.commit(files)
	list, err := f.read(all, v1alpha1.ManifestOptions{})
	if err != nil || len(list.Items) == 0 || list.Continue == "" {
		t.Fatalf("%v, %v", list, err)
	}
	if f.contents.given > 40<<20 {
		t.Errorf("read %d bytes of the cache", f.contents.given)
	}
}

// TestSecretsAreNotCached reads a Secret that the repository has as it is, and a ConfigMap.
func TestSecretsAreNotCached(t *testing.T) {
	f := newFixture(t)
	files := configMaps(t, "shop/web=red")
	files[path(t, "", "secrets", "shop", "db")] = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\n  namespace: shop\ndata:\n  password: aHVudGVyMg==\n"
	f.commit(owned(files))
	list, err := f.read(all, v1alpha1.ManifestOptions{})
	if err != nil || len(list.Items) != 2 {
		t.Fatalf("list = %+v (%v)", list, err)
	}
	kept := 0
	for _, content := range f.contents.held {
		kept++
		if strings.Contains(string(content), "aHVudGVyMg") {
			t.Errorf("the cache has the Secret:\n%s", content)
		}
	}
	if kept == 0 {
		t.Error("the cache does not have the ConfigMap")
	}
}

// TestRemoteThatCannotBeRead checks that errors do not quote what only the owner of the repository may know.
func TestRemoteThatCannotBeRead(t *testing.T) {
	f := newFixture(t)
	f.commit(owned(nil))
	f.git(f.repository, "update-ref", "-d", "refs/heads/main")
	f.git("", "-C", f.repository, "config", "core.repositoryFormatVersion", "99")
	_, err := f.read(all, v1alpha1.ManifestOptions{})
	wantReason(t, err, metav1.StatusReasonServiceUnavailable, "GitDestination shop/main cannot be read now")
	if strings.Contains(fmt.Sprint(err), f.repository) {
		t.Errorf("error names the repository: %v", err)
	}
}
