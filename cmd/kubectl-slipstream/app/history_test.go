// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// shop returns a cluster in which note was created (change 2) and changed twice (3, 4).
func shop(t *testing.T) *pastCluster {
	t.Helper()
	c := newPastCluster(t)
	c.put("note", map[string]string{"color": "red", "size": "1"})
	c.put("note", map[string]string{"color": "blue", "size": "1"})
	c.put("note", map[string]string{"color": "blue", "size": "2"})
	return c
}

func TestShow(t *testing.T) {
	c := shop(t)
	want := `Who:      jane, by an audit event
Object:   ConfigMap/note in namespace shop
Did:      Update
          x/configmaps/note.yaml
--- a/x/configmaps/note.yaml
+++ b/x/configmaps/note.yaml
@@ -4,5 +4,5 @@
   name: note
   namespace: shop
 data:
-  color: red
+  color: blue
   size: "1"
`
	for name, argument := range map[string]string{
		"by name": c.changeName(3), "by namespace and name": "shop/" + c.changeName(3), "by commit": shaOf(3)[:8],
	} {
		t.Run(name, func(t *testing.T) {
			out, notes, code := c.call("show", argument)
			if code != 0 || !strings.Contains(out, "Commit:   "+shaOf(3)+" of teams/main\n") {
				t.Fatalf("exit code %d: %s%s", code, out, notes)
			}
			for line := range strings.Lines(want) {
				if !strings.Contains(out, line) {
					t.Errorf("no line %q in\n%s", line, out)
				}
			}
		})
	}
	out, _, code := c.call("show", c.changeName(3), "-o", "json")
	var difference v1alpha1.ChangeDiff
	if err := json.Unmarshal([]byte(out), &difference); err != nil || code != 0 || difference.Kind != "ChangeDiff" || len(difference.Fields) != 1 {
		t.Errorf("exit code %d, %v: %s", code, err, out)
	}
}

// TestLogPatch lists changes with their diffs, of which one cannot be read.
func TestLogPatch(t *testing.T) {
	c := shop(t)
	c.lost = c.changeName(3)
	out, notes, code := c.call("log", "cm/note", "--since", "0", "--patch")
	for _, want := range []string{"Who:      jane", "-  size: \"1\"\n+  size: \"2\"\n", "\nThe diff cannot be shown: ", "+  color: red\n"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit code %d, no %q in\n%s%s", code, want, out, notes)
		}
	}
	if _, notes, code := c.call("log", "--oneline", "--patch"); code != 2 || !strings.Contains(notes, "oneline patch") {
		t.Errorf("exit code %d: %s", code, notes)
	}
}

func TestShowRefuses(t *testing.T) {
	c := shop(t)
	c.changes[0].Spec.Commits[0].SHA = shaOf(3)
	for _, test := range []struct{ argument, want string }{
		{"fffff0-00000f", `changes.configbutler.ai "fffff0-00000f" not found`},
		{shaOf(3)[:7], "commit " + shaOf(3)[:7] + " has the Changes above"},
		{"1234567", "no Change of namespace shop is in a commit 1234567"},
	} {
		if out, notes, code := c.call("show", test.argument); code != 2 || !strings.Contains(notes, test.want) || out != "" {
			t.Errorf("%s: exit code %d: %s%s", test.argument, code, out, notes)
		}
	}
}

func TestShowSecret(t *testing.T) {
	c := shop(t)
	c.put("secret", map[string]string{"password": "first"})
	c.put("secret", map[string]string{"password": "other"})
	out, notes, code := c.call("show", c.changeName(6))
	if code != 0 || !strings.Contains(out, "/data/password changed (value hidden)") {
		t.Errorf("exit code %d: %s%s", code, out, notes)
	}
}

func TestDiff(t *testing.T) {
	c := shop(t)
	c.put("new", map[string]string{"a": "b"})
	for name, test := range map[string]struct {
		args []string
		want []string
		code int
	}{
		"one object, live":        {[]string{"cm/note", "--from", shaOf(2)}, []string{"-  color: red\n-  size: \"1\"\n+  color: blue\n+  size: \"2\"\n", "1 of 1 objects"}, 1},
		"before a Change":         {[]string{"cm/note", "--from", c.changeName(4) + "^"}, []string{"-  size: \"1\"\n+  size: \"2\"\n"}, 1},
		"no difference":           {[]string{"cm/note", "--from", shaOf(4)}, []string{"No difference in 1 objects"}, 0},
		"two commits":             {[]string{"cm/note", "--from", shaOf(2), "--to", shaOf(3)}, []string{"-  color: red\n+  color: blue\n", "1 of 1"}, 1},
		"what came since":         {[]string{"--from", shaOf(4)}, []string{"--- /dev/null\n+++ b/shop/configmaps/new\n", "1 of 2 objects"}, 1},
		"a type":                  {[]string{"configmaps", "--from", shaOf(4)}, []string{"1 of 2 objects"}, 1},
		"an object of another":    {[]string{"deployment/web", "--from", shaOf(4)}, []string{"no Change of deployments.apps/web has a commit"}, 2},
		"no time":                 {[]string{"cm/note"}, []string{"--from is missing"}, 2},
		"a time that is none":     {[]string{"cm/note", "--from", "yesterday"}, []string{`--from is "yesterday"`}, 2},
		"before a time":           {[]string{"cm/note", "--from", "24h^"}, []string{"only a commit or Change may be followed by ^"}, 2},
		"names and a selector":    {[]string{"cm/note", "--from", "24h", "-l", "a=b"}, []string{"leave out either"}, 2},
		"no object of the name":   {[]string{"cm/absent", "--from", shaOf(4), "--destination", "teams/main"}, []string{"configmaps/absent is not in Git"}, 2},
		"a selector that is none": {[]string{"--from", "24h", "-l", "a in"}, []string{"--selector"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			out, notes, code := c.call(append([]string{"diff"}, test.args...)...)
			for _, want := range test.want {
				if code != test.code || !strings.Contains(out+notes, want) {
					t.Errorf("exit code %d, want %d, and %q in\n%s%s", code, test.code, want, out, notes)
				}
			}
		})
	}
}

// TestDiffOfSecrets shows which values differ, and no value.
func TestDiffOfSecrets(t *testing.T) {
	c := newPastCluster(t)
	c.put("secret", map[string]string{"password": "first", "user": "jane"})
	c.put("secret", map[string]string{"password": "other", "user": "jane"})
	out, notes, code := c.call("diff", "secret/secret", "--from", shaOf(2))
	want := "-  password: (hidden, before)\n+  password: (hidden, after)\n   user: (hidden)\n"
	if code != 1 || !strings.Contains(out, want) {
		t.Errorf("exit code %d: %s%s", code, out, notes)
	}
	c.sealed = true
	out, notes, code = c.call("diff", "secret/secret", "--from", shaOf(2))
	if code != 0 || out != "" || !strings.Contains(notes, "Values of Secrets are not compared") {
		t.Errorf("exit code %d: %s%s", code, out, notes)
	}
}

// TestDestination names the candidates if there are several.
func TestDestination(t *testing.T) {
	c := shop(t)
	c.put("other", map[string]string{"a": "b"})
	c.changes[0].Spec.Commits[0].DestinationRef.Name = "copy"
	if _, notes, code := c.call("diff", "--from", "24h"); code != 2 || !strings.Contains(notes, "--destination teams/copy or --destination teams/main") {
		t.Errorf("exit code %d: %s", code, notes)
	}
	if _, notes, code := c.call("diff", "--from", shaOf(5), "--destination", "teams/main"); code != 0 {
		t.Errorf("exit code %d: %s", code, notes)
	}
}

func TestUndo(t *testing.T) {
	c := shop(t)
	out, notes, code := c.call("undo", c.changeName(3), "--yes")
	if code != 0 || !strings.Contains(out, `/data/color   "red"   "blue"   "red"`) || !strings.Contains(out, "ConfigMap/note updated\n") {
		t.Fatalf("exit code %d: %s%s", code, out, notes)
	}
	if difference := cmp.Diff(map[string]any{"color": "red", "size": "2"}, c.data("configmaps/note")); difference != "" {
		t.Error(difference)
	}
	if reason := c.objects["configmaps/note"].GetAnnotations()[v1alpha1.AnnotationReason]; reason != "undo of change "+c.changeName(3) {
		t.Errorf("reason %q", reason)
	}
	before := c.version
	if out, notes, code := c.call("undo", c.changeName(3), "--yes"); code != 0 || c.version != before {
		t.Errorf("second time: exit code %d: %s%s", code, out, notes)
	}
}

func TestUndoConflict(t *testing.T) {
	c := shop(t)
	c.put("note", map[string]string{"color": "green", "size": "2"})
	before := c.version
	_, notes, code := c.call("undo", c.changeName(3), "--yes")
	want := fmt.Sprintf("change %s of ConfigMap/note cannot be undone:\n  /data/color has changed again: change %s by jane", c.changeName(3), c.changeName(5))
	if code != 4 || !strings.Contains(notes, want) || c.version != before {
		t.Errorf("exit code %d, version %d instead of %d: %s", code, c.version, before, notes)
	}
}

// TestUndoWhole undoes the deletion and the creation of an object.
func TestUndoWhole(t *testing.T) {
	c := shop(t)
	c.drop("configmaps", "note")
	if out, notes, code := c.call("undo", c.changeName(5), "--yes"); code != 0 || c.data("configmaps/note")["size"] != "2" {
		t.Errorf("deletion: exit code %d: %s%s", code, out, notes)
	}
	c.put("other", map[string]string{"a": "b"})
	if out, notes, code := c.call("undo", c.changeName(7), "--yes"); code != 0 || c.objects["configmaps/other"] != nil {
		t.Errorf("creation: exit code %d: %s%s", code, out, notes)
	}
	if _, notes, code := c.call("undo", c.changeName(2), "--yes"); code != 4 || !strings.Contains(notes, "/data/color has changed again") {
		t.Errorf("creation of what has changed since: exit code %d: %s", code, notes)
	}
}

// TestUndoSecret reads the values, and never writes masked ones.
func TestUndoSecret(t *testing.T) {
	c := newPastCluster(t)
	c.put("secret", map[string]string{"password": "first"})
	c.put("secret", map[string]string{"password": "other", "user": "jane"})
	c.sealed = true
	before := c.version
	if _, notes, code := c.call("undo", c.changeName(3), "--yes"); code != 5 || c.version != before || !strings.Contains(notes, "cannot be read") {
		t.Errorf("without permission: exit code %d: %s", code, notes)
	}
	c.sealed = false
	out, notes, code := c.call("undo", c.changeName(3), "--yes")
	if difference := cmp.Diff(map[string]any{"password": "Zmlyc3Q="}, c.data("secrets/secret")); code != 0 || difference != "" || strings.Contains(out, "Zmly") {
		t.Errorf("exit code %d: %s%s%s", code, out, notes, difference)
	}
}
