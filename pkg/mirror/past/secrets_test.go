// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package past_test

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

// password is a value that only callers with the permission get on Secrets may see.
var password = base64.StdEncoding.EncodeToString([]byte("open sesame"))

func TestSecrets(t *testing.T) {
	const asked, decrypted = v1alpha1.SecretsMasked, v1alpha1.SecretsDecrypted
	const masked, sealed = `"password":"(hidden, 8 to 15 bytes)","user":"(hidden, 4 to 7 bytes)"`, `"(hidden, encrypted for a key that this server does not hold)"`
	shown := `"password":"` + password + `"`
	for name, test := range map[string]struct {
		encrypted, key bool
		rights         rights
		secrets        string
		want           string
		reason         metav1.StatusReason
	}{
		"as it is":                    {rights: all, want: masked},
		"as it is, asked for":         {rights: all, secrets: asked, want: masked},
		"as it is, decrypted":         {rights: all, secrets: decrypted, want: shown},
		"encrypted":                   {encrypted: true, key: true, rights: all, want: masked},
		"encrypted, decrypted":        {encrypted: true, key: true, rights: all, secrets: decrypted, want: shown},
		"encrypted for others":        {encrypted: true, rights: all, want: sealed},
		"encrypted for others, ask":   {encrypted: true, rights: all, secrets: decrypted, reason: metav1.StatusReasonBadRequest},
		"one that may be read":        {rights: rights{"get secrets shop/database"}, secrets: decrypted, want: shown},
		"one that may not be read":    {rights: rights{"list secrets shop"}, secrets: decrypted, reason: metav1.StatusReasonForbidden},
		"one that may be seen masked": {rights: rights{"get secrets shop"}, want: masked},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			content := plain(t, secret(password))
			if test.encrypted {
				content = f.encrypted(secret(password))
			}
			if test.key {
				f.holdKey()
			}
			f.commit(owned(map[string]string{path(t, "", "secrets", "shop", "database"): content}))
			list, err := f.read(test.rights, v1alpha1.ManifestOptions{
				Resource: "secrets", Namespace: "shop", Name: "database", Secrets: test.secrets,
			})
			if test.reason != "" {
				wantReason(t, err, test.reason, "")
				return
			}
			if err != nil || len(list.Items) != 1 {
				t.Fatalf("%+v, %v", list, err)
			}
			text := string(list.Items[0].Raw)
			if !strings.Contains(text, test.want) || strings.Contains(text, "sops") {
				t.Errorf("got %s, want %s", text, test.want)
			}
			if readable := test.secrets == decrypted; strings.Contains(text, password) != readable || strings.Contains(text, "annotated") != readable {
				t.Errorf("values are readable: %s", text)
			}
			if _, cached := f.contents.Get(gitrepo.BlobHash([]byte(content))); cached != test.encrypted {
				t.Errorf("the content is cached: %v", cached)
			}
			if !strings.Contains(text, `"labels":{"app":"web"}`) {
				t.Errorf("lacks the labels: %s", text)
			}
		})
	}
}

// TestForgedSecret moves the Secret of another namespace into one whose Secrets the caller may read.
func TestForgedSecret(t *testing.T) {
	f := newFixture(t)
	f.holdKey()
	victim := secret(password)
	victim.SetNamespace("shop-prod")
	victim.SetAnnotations(nil)
	victim.SetLabels(nil)
	file := f.encrypted(victim)
	for name, metadata := range map[string]string{
		"label": "  namespace: shop\n  labels:\n    x: -prod\n", "field": "  namespace: shop\n  x: -prod\n",
	} {
		forged := strings.Replace(file, "  namespace: shop-prod\n", metadata, 1)
		if forged == file {
			t.Fatal(file)
		}
		at := path(t, "", "secrets", "shop", "database")
		commit := f.commit(owned(map[string]string{at: forged}))
		decrypted := v1alpha1.ManifestOptions{Resource: "secrets", Namespace: "shop", Secrets: v1alpha1.SecretsDecrypted}
		list, err := f.read(rights{"list secrets shop"}, decrypted)
		if err != nil || len(list.Items) != 0 || !slices.Equal(list.Unreadable, []string{at}) {
			t.Errorf("%s: %+v, %v", name, list, err)
		}
		decrypted.Name = "database"
		list, err = f.read(rights{"get secrets shop"}, decrypted)
		if name == "label" {
			wantReason(t, err, metav1.StatusReasonBadRequest, "was not encrypted by this server")
		} else if err != nil || len(list.Items) != 0 {
			t.Errorf("%s: %+v, %v", name, list, err)
		}
		out, err := f.Diff(t.Context(), changeOf("secrets", commit, "", forged))
		if err != nil {
			continue
		}
		if text := string(out.After.Raw); strings.Contains(text, " bytes)") || !strings.Contains(text, `"password":"(hidden)"`) {
			t.Errorf("%s: the diff shows %s", name, text)
		}
	}
	// Without values the label shows a hidden Secret.
	f.commit(map[string]string{path(t, "", "secrets", "shop", "database"): strings.Replace(
		file, "  namespace: shop-prod\n", "  namespace: shop\n  labels:\n    x: -prod\n", 1)})
	list, err := f.read(all, v1alpha1.ManifestOptions{})
	if err != nil || len(list.Items) != 1 || !strings.Contains(string(list.Items[0].Raw), `"password":"(hidden)"`) {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestListWithSealedSecret reads values, of which those of one Secret are encrypted for another key.
func TestListWithSealedSecret(t *testing.T) {
	f := newFixture(t)
	other := secret(password)
	other.SetName("other")
	at := path(t, "", "secrets", "shop", "other")
	f.commit(owned(map[string]string{at: f.encrypted(other), path(t, "", "secrets", "shop", "database"): plain(t, secret(password))}))
	list, err := f.read(all, v1alpha1.ManifestOptions{Secrets: v1alpha1.SecretsDecrypted})
	if err != nil || len(list.Items) != 1 || !slices.Equal(list.Unreadable, []string{at}) {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestDamagedSecret(t *testing.T) {
	f := newFixture(t)
	f.holdKey()
	damaged := strings.Replace(f.encrypted(secret(password)), "type: Opaque", "type: Other", 1)
	at := path(t, "", "secrets", "shop", "database")
	f.commit(owned(map[string]string{at: damaged}))
	for _, shown := range []string{v1alpha1.SecretsMasked, v1alpha1.SecretsDecrypted} {
		list, err := f.read(all, v1alpha1.ManifestOptions{Secrets: shown})
		if err != nil || len(list.Items) != 0 || len(list.Unreadable) != 1 || list.Unreadable[0] != at {
			t.Errorf("%s: %+v, %v", shown, list, err)
		}
	}
}

// TestMaskedLengths checks the classes of lengths.
func TestMaskedLengths(t *testing.T) {
	f := newFixture(t)
	object := secret("")
	object.Object["data"] = map[string]any{
		"a": "", "b": base64.StdEncoding.EncodeToString([]byte("x")), "c": base64.StdEncoding.EncodeToString([]byte("xxx")),
		"d": base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", 1024))), "e": "not base64",
	}
	object.Object["stringData"] = map[string]any{"f": "text"}
	f.commit(owned(map[string]string{path(t, "", "secrets", "shop", "database"): plain(t, object)}))
	list, err := f.read(all, v1alpha1.ManifestOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	text := string(list.Items[0].Raw)
	for _, want := range []string{
		`"a":"(hidden, empty)"`, `"b":"(hidden, 1 byte)"`, `"c":"(hidden, 2 to 3 bytes)"`, `"d":"(hidden, 1024 to 2047 bytes)"`,
		`"e":"(hidden, 8 to 15 bytes)"`, `"f":"(hidden, 4 to 7 bytes)"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %s", text, want)
		}
	}
}
