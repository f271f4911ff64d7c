// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

func TestRestoreObject(t *testing.T) {
	c := shop(t)
	before := c.version
	out, notes, code := c.call("restore", "cm/note", "--to", shaOf(2))
	if code != 2 || c.version != before || !strings.Contains(notes, "nothing is written, because there is no terminal to ask on: add --yes") ||
		!strings.Contains(out, "1 to update") {
		t.Fatalf("without --yes: exit code %d: %s%s", code, out, notes)
	}
	for _, dryRun := range []string{"server", "client"} {
		out, notes, code := c.call("restore", "cm/note", "--to", shaOf(2), "--dry-run="+dryRun, "-o", "yaml")
		if code != 0 || c.version != before || !strings.Contains(out, "  color: red\n") || !strings.Contains(notes, "1 to update") {
			t.Errorf("dry run by the %s: exit code %d: %s%s", dryRun, code, out, notes)
		}
	}
	out, notes, code = c.call("restore", "cm/note", "--to", c.changeName(2), "--yes")
	if difference := cmp.Diff(map[string]any{"color": "red", "size": "1"}, c.data("configmaps/note")); code != 0 || difference != "" {
		t.Fatalf("exit code %d: %s%s%s", code, out, notes, difference)
	}
	for _, want := range []string{"FIELD         THEN    NOW      WRITTEN\n", `/data/color   "red"   "blue"   "red"`, "ConfigMap/note updated\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	reason := "restored to commit " + shaOf(2) + " of 2026-07-03T08:02:00Z"
	if got := c.objects["configmaps/note"].GetAnnotations()[v1alpha1.AnnotationReason]; got != reason {
		t.Errorf("reason %q, want %q", got, reason)
	}
	before = c.version
	if out, notes, code := c.call("restore", "cm/note", "--to", shaOf(2)); code != 0 || c.version != before || out != "1 unchanged\n" {
		t.Errorf("second time: exit code %d: %s%s", code, out, notes)
	}
}

// TestRestoreNamespace creates, updates and deletes.
func TestRestoreNamespace(t *testing.T) {
	c := newPastCluster(t)
	c.put("early", map[string]string{"a": "1"})
	for _, name := range []string{"a", "b", "c", "d", "secret"} {
		c.put(name, map[string]string{"a": "1"})
	}
	to := shaOf(len(c.states) - 1)
	c.drop("configmaps", "a")
	c.put("b", map[string]string{"a": "2", "b": "3"})
	c.put("secret", map[string]string{"a": "2"})
	c.put("later", map[string]string{"a": "1"})
	out, notes, code := c.call("restore", "--to", to, "--yes")
	if code != 0 || c.objects["configmaps/later"] == nil || !strings.Contains(out, "2 to update, 1 to create, 3 unchanged\n") {
		t.Fatalf("exit code %d: %s%s", code, out, notes)
	}
	out, notes, code = c.call("restore", "--to", to, "--yes", "--prune")
	if code != 0 || c.objects["configmaps/later"] != nil || !strings.Contains(out, "ConfigMap/later deleted\n") {
		t.Fatalf("prune: exit code %d: %s%s", code, out, notes)
	}
	for key, want := range map[string]string{"configmaps/a": "1", "configmaps/b": "1", "secrets/secret": "MQ=="} {
		if difference := cmp.Diff(map[string]any{"a": want}, c.data(key)); difference != "" {
			t.Errorf("%s: %s", key, difference)
		}
	}
	before := c.version
	if out, notes, code = c.call("restore", "--to", to, "--yes", "--prune"); code != 0 || c.version != before || out != "6 unchanged\n" {
		t.Errorf("second time: exit code %d, %d writes: %s%s", code, c.version-before, out, notes)
	}
	if len(slices.Compact(slices.DeleteFunc(c.requests, func(query string) bool { return !strings.Contains(query, "Decrypted") }))) == 0 {
		t.Error("the values of the Secret were not asked for")
	}
}

// TestRestoreWithoutSecrets leaves Secrets out whose values the user may not read.
func TestRestoreWithoutSecrets(t *testing.T) {
	for why, hide := range map[string]func(*pastCluster){
		"jane may not read Secrets":     func(c *pastCluster) { c.sealed = true },
		"the server does not show them": func(c *pastCluster) { c.withheld = true },
	} {
		c := shop(t)
		c.put("secret", map[string]string{"a": "1"})
		to := shaOf(len(c.states) - 1)
		c.put("secret", map[string]string{"a": "2"})
		c.put("note", map[string]string{"color": "green"})
		hide(c)
		out, notes, code := c.call("restore", "--to", to, "--yes", "--prune")
		if code != 3 || c.data("configmaps/note")["color"] != "blue" || c.data("secrets/secret")["a"] != "Mg==" ||
			!strings.Contains(notes, "Secret/secret is left as it is: its values cannot be read") || !strings.Contains(notes, why) {
			t.Errorf("%s: exit code %d: %s%s", why, code, out, notes)
		}
	}
}

// TestRestoreUnreadable has a state with a file that is no object. Its object may exist in the cluster, so nothing is pruned.
func TestRestoreUnreadable(t *testing.T) {
	c := shop(t)
	c.put("later", map[string]string{"a": "1"})
	c.unreadable = []string{"x/edited.yaml"}
	before := c.version
	if _, notes, code := c.call("restore", "--to", shaOf(4), "--prune", "--yes"); code != 2 || c.version != before ||
		!strings.Contains(notes, "x/edited.yaml is no object, so it is not known what came since") {
		t.Errorf("exit code %d: %s", code, notes)
	}
	if _, notes, code := c.call("restore", "--to", shaOf(2), "--yes"); code != 3 || c.data("configmaps/note")["color"] != "red" ||
		!strings.Contains(notes, "x/edited.yaml is left as it is: it is no object") {
		t.Errorf("without --prune: exit code %d: %s", code, notes)
	}
}

// TestRestoreAfterChange changes an object after the preview.
func TestRestoreAfterChange(t *testing.T) {
	for name, change := range map[string]func(c *pastCluster){
		"content":  func(c *pastCluster) { c.put("note", map[string]string{"color": "green"}) },
		"deletion": func(c *pastCluster) { c.drop("configmaps", "note") },
	} {
		t.Run(name, func(t *testing.T) {
			c := shop(t)
			c.beforeWrite = func() {
				c.beforeWrite = nil
				change(c)
			}
			out, notes, code := c.call("restore", "cm/note", "--to", shaOf(2), "--yes")
			if code != 4 || c.data("configmaps/note")["color"] == "red" || !strings.Contains(notes, "it has changed since the preview") {
				t.Errorf("exit code %d: %s%s", code, out, notes)
			}
		})
	}
	// Without another content, a new version is no reason to refuse.
	c := shop(t)
	c.beforeWrite = func() {
		c.beforeWrite = nil
		c.put("note", map[string]string{"color": "blue", "size": "2"})
	}
	if out, notes, code := c.call("restore", "cm/note", "--to", shaOf(2), "--yes"); code != 0 || c.data("configmaps/note")["color"] != "red" {
		t.Errorf("same content: exit code %d: %s%s", code, out, notes)
	}
}

// TestRestoreCreatesNamespace creates the namespace before the objects in it.
func TestRestoreCreatesNamespace(t *testing.T) {
	c := shop(t)
	to := shaOf(len(c.states) - 1)
	c.drop("configmaps", "note")
	c.drop("namespaces", "shop")
	out, notes, code := c.call("restore", "--to", to, "--yes")
	if code != 0 || !strings.Contains(out, "Namespace/shop created\nConfigMap/note created\n") {
		t.Errorf("exit code %d: %s%s", code, out, notes)
	}
}

// TestRestoreType names a type in each way that kubectl understands. The group has more than one dot.
func TestRestoreType(t *testing.T) {
	for _, name := range []string{"ingresses", "Ingress", "ingresses.networking.k8s.io", "ingresses.v1.networking.k8s.io", "ingress.networking.k8s.io/web"} {
		c := shop(t)
		ingress := func(class string) *unstructured.Unstructured {
			return &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": map[string]any{"name": "web", "namespace": "shop"},
				"spec": map[string]any{"ingressClassName": class},
			}}
		}
		c.store("ingresses", ingress("a"), nil)
		to := shaOf(len(c.states) - 1)
		c.store("ingresses", ingress("b"), nil)
		out, notes, code := c.call("restore", name, "--to", to, "--yes")
		if class, _, _ := unstructured.NestedString(c.objects["ingresses/web"].Object, "spec", "ingressClassName"); code != 0 || class != "a" {
			t.Errorf("%s: exit code %d: %s%s", name, code, out, notes)
		}
	}
}

// TestRestoreUnserved finds an object of a type that is not served any more, with a namespace or without.
func TestRestoreUnserved(t *testing.T) {
	for namespace, code := range map[string]int{"shop": 3, "": 3, "other": 2} {
		c := shop(t)
		widget := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "a"}}}
		widget.SetNamespace(namespace)
		c.store("widgets", widget, nil)
		to := shaOf(len(c.states) - 1)
		want := map[int]string{3: `Widget/a is left as it is: no matches for kind "Widget"`, 2: "widgets.example.com/a did not exist in commit " + to}[code]
		if out, notes, got := c.call("restore", "widgets.example.com/a", "--to", to, "--destination", "teams/main", "--yes"); got != code || !strings.Contains(notes, want) {
			t.Errorf("namespace %q: exit code %d: %s%s", namespace, got, out, notes)
		}
	}
}

// TestRestoreSeveralDestinations reads the destination of the Change that is named, and otherwise asks for one.
func TestRestoreSeveralDestinations(t *testing.T) {
	for _, object := range []string{"cm/note", ""} {
		c := shop(t)
		c.changes[0].Spec.Commits[0].DestinationRef.Name = "other" // The newest one.
		restore := func(to string, args ...string) (out, notes string, code int) {
			args = append([]string{"restore", "--to", to, "--yes"}, args...)
			if object != "" {
				args = append(args, object)
			}
			return c.call(args...)
		}
		if out, notes, code := restore(shaOf(2)); code != 2 || !strings.Contains(notes, "give --destination teams/main or --destination teams/other") {
			t.Errorf("%q: exit code %d: %s%s", object, code, out, notes)
		}
		if out, notes, code := restore(c.changeName(3) + "^"); code != 0 || c.data("configmaps/note")["color"] != "red" {
			t.Errorf("%q: exit code %d: %s%s", object, code, out, notes)
		}
		if out, notes, code := restore(shaOf(3), "--destination", "teams/main"); code != 0 || c.data("configmaps/note")["color"] != "blue" {
			t.Errorf("%q: exit code %d: %s%s", object, code, out, notes)
		}
	}
}

func TestRestoreRefuses(t *testing.T) {
	c := shop(t)
	before := c.version
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no state":            {[]string{"cm/note"}, "--to is missing"},
		"prune of one object": {[]string{"cm/note", "--to", shaOf(2), "--prune"}, "--prune is for a whole namespace"},
		"prune by labels":     {[]string{"-l", "a=b", "--to", shaOf(2), "--prune"}, "--prune is for a whole namespace"},
		"before it existed":   {[]string{"cm/note", "--to", shaOf(1)}, "configmaps/note did not exist in commit " + shaOf(1)},
		"one of two": {
			[]string{"cm/note", "secret/note", "--to", shaOf(2)}, "secrets/note did not exist in commit " + shaOf(2),
		},
		"nothing existed":        {[]string{"--to", shaOf(1)}, "has no such object"},
		"a dry run that is none": {[]string{"cm/note", "--to", shaOf(2), "--dry-run=maybe"}, `--dry-run is "maybe"`},
		"recreate of another":    {[]string{"cm/note", "--to", shaOf(2), "--recreate", "cm/other"}, "--recreate is configmaps/other"},
	} {
		t.Run(name, func(t *testing.T) {
			if out, notes, code := c.call(append([]string{"restore", "--yes"}, test.args...)...); code != 2 || !strings.Contains(notes, test.want) || c.version != before {
				t.Errorf("exit code %d: %s%s", code, out, notes)
			}
		})
	}
}

func TestBlame(t *testing.T) {
	c := shop(t)
	c.put("note", map[string]string{"color": "blue", "size": "2", "new": "x"})
	c.objects["configmaps/note"].Object["data"].(map[string]any)["size"] = "3" // No Change has it.
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"all": {nil, "0abc002 jane 58d apiVersion: v1\n0abc002 jane 58d kind: ConfigMap\n0abc002 jane 58d metadata:\n0abc002 jane 58d name: note\n" +
			"0abc002 jane 58d namespace: shop\n0abc002 jane 58d data:\n0abc003 jane 57d color: blue\n0abc005 jane 55d new: x\nnot recorded size: \"3\"\n"},
		"the newest ones": {[]string{"--limit", "2"}, "^0abc004 before 56d apiVersion: v1\n^0abc004 before 56d kind: ConfigMap\n" +
			"^0abc004 before 56d metadata:\n^0abc004 before 56d name: note\n^0abc004 before 56d namespace: shop\n^0abc004 before 56d data:\n" +
			"^0abc004 before 56d color: blue\n0abc005 jane 55d new: x\nnot recorded size: \"3\"\n"},
	} {
		t.Run(name, func(t *testing.T) {
			out, notes, code := c.call(append([]string{"blame", "cm/note"}, test.args...)...)
			var got strings.Builder
			for line := range strings.Lines(out) {
				got.WriteString(strings.Join(strings.Fields(line), " ") + "\n")
			}
			want := strings.NewReplacer("0abc002", shaOf(2)[:7], "0abc003", shaOf(3)[:7], "0abc004", shaOf(4)[:7], "0abc005", shaOf(5)[:7]).Replace(test.want)
			if difference := cmp.Diff(want, got.String()); code != 0 || difference != "" {
				t.Errorf("exit code %d: %s%s", code, notes, difference)
			}
		})
	}
}

// TestBlameUnreadable prints the lines that are known if an old Change cannot be read.
func TestBlameUnreadable(t *testing.T) {
	c := shop(t)
	for i, want := range map[int][]string{
		2: {"older name: note", shaOf(3)[:7] + " jane 57d color: blue", shaOf(4)[:7] + " jane 56d size: \"2\""},
		4: {"older name: note", "older color: blue", "older size: \"2\""},
	} {
		c.lost = c.changeName(i)
		out, notes, code := c.call("blame", "cm/note")
		var got strings.Builder
		for line := range strings.Lines(out) {
			got.WriteString(strings.Join(strings.Fields(line), " ") + "\n")
		}
		if code != 0 || !strings.Contains(notes, "Change "+c.lost+" cannot be read") || !strings.Contains(notes, "history was rewritten") {
			t.Errorf("exit code %d: %s", code, notes)
		}
		for _, line := range want {
			if !strings.Contains(got.String(), line+"\n") {
				t.Errorf("change %d: no %q in\n%s", i, line, got.String())
			}
		}
	}
}

// TestBlameSecret attributes lines whose values are hidden.
func TestBlameSecret(t *testing.T) {
	c := newPastCluster(t)
	c.put("secret", map[string]string{"password": "first", "user": "jane"})
	c.put("secret", map[string]string{"password": "other", "user": "jane"})
	out, notes, code := c.call("blame", "secret/secret")
	var got []string
	for line := range strings.Lines(out) {
		if strings.Contains(line, "(hidden)") {
			got = append(got, strings.Join(strings.Fields(line), " "))
		}
	}
	want := []string{shaOf(3)[:7] + " jane 57d password: (hidden)", shaOf(2)[:7] + " jane 58d user: (hidden)"}
	if difference := cmp.Diff(want, got); code != 0 || difference != "" {
		t.Errorf("exit code %d: %s%s", code, notes, difference)
	}
}
