// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package past_test

import (
	"encoding/base64"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubetesting "k8s.io/client-go/testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// laterPassword is the value after another tenant has created the namespace again.
var laterPassword = base64.StdEncoding.EncodeToString([]byte("open barley"))

// tenant may read the Secrets of the namespace shop.
var tenant = rights{"get secrets shop", "list secrets shop"}

// wantValue fails the test unless a user sees a value of the Secret shop/database, alone and in a list.
func (f *fixture) wantValue(r rights, at, value string) {
	f.t.Helper()
	for _, name := range []string{"database", ""} {
		list, err := f.read(r, decrypted(at, name))
		if err != nil || len(list.Items) != 1 || !strings.Contains(string(list.Items[0].Raw), `"password":"`+value+`"`) {
			f.t.Errorf("at %q, name %q: %+v, %v; want the value", at, name, list, err)
		}
	}
}

// wantHidden fails the test if the tenant sees a value of the Secret shop/database, or no masked one.
func (f *fixture) wantHidden(at string) {
	f.t.Helper()
	_, err := f.read(tenant, decrypted(at, "database"))
	wantReason(f.t, err, metav1.StatusReasonForbidden, "cannot get secrets in the whole cluster")
	list, err := f.read(tenant, decrypted(at, ""))
	file := path(f.t, "", "secrets", "shop", "database")
	if err != nil || len(list.Items) != 0 || !slices.Equal(list.Unreadable, []string{file}) {
		f.t.Errorf("at %q, list: %+v, %v", at, list, err)
	}
	masked := decrypted(at, "database")
	masked.Secrets = v1alpha1.SecretsMasked
	list, err = f.read(tenant, masked)
	if err != nil || len(list.Items) != 1 || !strings.Contains(string(list.Items[0].Raw), `"password":"(hidden`) {
		f.t.Errorf("at %q, masked: %+v, %v", at, list, err)
	}
}

// decrypted are the options that select Secrets of the namespace shop with their values.
func decrypted(at, name string) v1alpha1.ManifestOptions {
	return v1alpha1.ManifestOptions{At: at, Resource: "secrets", Namespace: "shop", Name: name, Secrets: v1alpha1.SecretsDecrypted}
}

// forms returns the file of the Secret shop/database with a value, for each way in which a destination may write it.
func (f *fixture) forms(value string) map[string]string {
	f.t.Helper()
	return map[string]string{"encrypted": f.encrypted(secret(value)), "as it is": plain(f.t, secret(value))}
}

// TestSecretsOfDeletedNamespace reads as a tenant who has created a namespace again that another tenant had.
func TestSecretsOfDeletedNamespace(t *testing.T) {
	for _, form := range []string{"encrypted", "as it is"} {
		t.Run(form, func(t *testing.T) {
			f := newFixture(t)
			f.holdKey()
			file := path(t, "", "secrets", "shop", "database")
			old := f.commit(owned(map[string]string{file: f.forms(password)[form]}))
			f.wantValue(tenant, old, password)
			f.deleteNamespace()
			f.wantHidden(old)
			f.wantHidden("")
			f.commit(map[string]string{file: ""})
			f.createNamespace(noon.Add(-8*time.Hour - 30*time.Minute))
			later := f.commit(map[string]string{file: f.forms(laterPassword)[form]})
			for _, at := range []string{old, "9h30m"} {
				f.wantHidden(at)
			}
			for _, at := range []string{later, "", "8h"} {
				f.wantValue(tenant, at, laterPassword)
			}
			everywhere := append(rights{"get secrets "}, tenant...)
			f.wantValue(everywhere, old, password)
			f.deleteNamespace()
			f.wantHidden(later)
			f.wantValue(everywhere, later, laterPassword)
		})
	}
}

// TestSecretsThatOutliveTheirNamespace reads commits from after the creation of a namespace, with files from before it.
func TestSecretsThatOutliveTheirNamespace(t *testing.T) {
	for _, form := range []string{"encrypted", "as it is"} {
		t.Run(form, func(t *testing.T) {
			f := newFixture(t)
			f.holdKey()
			file := path(t, "", "secrets", "shop", "database")
			f.commit(owned(map[string]string{file: f.forms(password)[form]}))
			f.deleteNamespace()
			f.createNamespace(noon.Add(-9*time.Hour - 30*time.Minute))
			first := f.commit(map[string]string{"README.md": "of another destination"})
			f.wantHidden(first)
			f.commit(map[string]string{"README.md": "changed"})
			f.wantHidden(first)
			f.wantHidden("")
			later := f.commit(map[string]string{file: f.forms(laterPassword)[form]})
			f.wantHidden(first)
			f.wantValue(tenant, later, laterPassword)
			// A time that is too early hides what it had to be newer for.
			f.commitAt(noon.AddDate(-2, 0, 0), map[string]string{"README.md": "of the past"})
			f.wantHidden("")
			f.commit(map[string]string{"README.md": "of the present"})
			f.wantHidden("")
			f.wantValue(tenant, later, laterPassword)
		})
	}
}

// TestLateSecretsOfDeletedNamespace reads changes that could be pushed only after another tenant had created the namespace again.
func TestLateSecretsOfDeletedNamespace(t *testing.T) {
	f := newFixture(t)
	f.holdKey()
	file := path(t, "", "secrets", "shop", "database")
	f.commit(owned(nil))
	f.deleteNamespace()
	created := noon.Add(-5 * time.Hour)
	f.createNamespace(created)
	late := f.commitLate(created.Add(-time.Hour), created.Add(time.Hour), map[string]string{file: f.encrypted(secret(password))})
	f.wantHidden(late)
	next := f.commitAt(created.Add(time.Hour), map[string]string{"README.md": "of another destination"})
	f.wantHidden(next)
	later := f.commitAt(created.Add(2*time.Hour), map[string]string{file: f.encrypted(secret(laterPassword))})
	f.wantValue(tenant, later, laterPassword)
	f.wantHidden(next)
}

// TestOldFilesPushedAgain reads a file of a deleted namespace from a commit that others have pushed after the namespace was created again.
func TestOldFilesPushedAgain(t *testing.T) {
	f := newFixture(t)
	f.holdKey()
	content := f.encrypted(secret(password))
	created := noon.Add(-5 * time.Hour)
	f.deleteNamespace()
	f.createNamespace(created)
	f.commitAt(created.Add(time.Hour), owned(map[string]string{path(t, "", "secrets", "shop", "database"): content}))
	f.wantValue(tenant, "", password) // Without a Change, the branch decides.
	f.addChange("written", created.Add(-time.Millisecond), "", content)
	f.wantHidden("")
	everywhere := append(rights{"get secrets "}, tenant...)
	f.wantValue(everywhere, "", password)
	f.addChange("replaced", created.Add(2*time.Hour), content, f.encrypted(secret(laterPassword)))
	f.wantHidden("")
	f.addChange("restored", created.Add(3*time.Hour), "", content)
	f.wantValue(tenant, "", password)
}

// TestAlteredFilesPushedAgain is the same for a file that others have changed without effect on its values, so that no Change has its bytes.
func TestAlteredFilesPushedAgain(t *testing.T) {
	version := regexp.MustCompile(`(?m)^  version: .*$`)
	for name, alter := range map[string]func(string) string{
		"a comment":       func(content string) string { return content + "# a comment\n" },
		"another version": func(content string) string { return version.ReplaceAllString(content, "  version: 3.0.0") },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.holdKey()
			content := f.encrypted(secret(password))
			altered := alter(content)
			if altered == content {
				t.Fatalf("not altered:\n%s", content)
			}
			created := noon.Add(-5 * time.Hour)
			f.deleteNamespace()
			f.createNamespace(created)
			f.addChange("written", created.Add(-time.Minute), "", content)
			f.commitAt(created.Add(time.Hour), owned(map[string]string{path(t, "", "secrets", "shop", "database"): altered}))
			f.wantHidden("")
			f.wantValue(append(rights{"get secrets "}, tenant...), "", password)
		})
	}
}

// TestDeletedFilesPushedAgain is the same for a file of which only the deletion is on record.
func TestDeletedFilesPushedAgain(t *testing.T) {
	f := newFixture(t)
	f.holdKey()
	content := f.encrypted(secret(password))
	created := noon.Add(-5 * time.Hour)
	f.deleteNamespace()
	f.createNamespace(created)
	f.addChange("deleted", created.Add(-time.Minute), content, "")
	f.commitAt(created.Add(time.Hour), owned(map[string]string{path(t, "", "secrets", "shop", "database"): content}))
	f.wantHidden("")
}

// addChange records a change of the Secret shop/database.
func (f *fixture) addChange(name string, at time.Time, before, after string) {
	f.t.Helper()
	change := changeOf("secrets", "", before, after)
	change.Name, change.Spec.Time = name, metav1.NewMicroTime(at)
	if err := f.api.Tracker().Add(change); err != nil {
		f.t.Fatal(err)
	}
}

// TestUnknownChanges reads while Changes cannot be read.
func TestUnknownChanges(t *testing.T) {
	f := newFixture(t)
	f.commit(owned(map[string]string{path(t, "", "secrets", "shop", "database"): plain(t, secret(password))}))
	f.api.PrependReactor("list", "changes", func(kubetesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("unreachable")
	})
	_, err := f.read(tenant, decrypted("", "database"))
	wantReason(t, err, metav1.StatusReasonInternalError, "read the Changes of the namespace shop")
}

// TestUnknownNamespace reads while the namespace cannot be read.
func TestUnknownNamespace(t *testing.T) {
	f := newFixture(t)
	f.commit(owned(map[string]string{path(t, "", "secrets", "shop", "database"): plain(t, secret(password))}))
	f.cluster.PrependReactor("get", "namespaces", func(kubetesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("unreachable")
	})
	for _, name := range []string{"database", ""} {
		_, err := f.read(tenant, decrypted("", name))
		wantReason(t, err, metav1.StatusReasonInternalError, "read the namespace shop")
	}
	f.wantValue(all, "", password)
}
