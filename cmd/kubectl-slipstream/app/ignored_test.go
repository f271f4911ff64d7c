// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// TestIgnoredFields compares objects without the fields that a destination ignores, and keeps them as they are.
func TestIgnoredFields(t *testing.T) {
	c := newPastCluster(t)
	c.ignore = []v1alpha1.IgnoreRule{{Fields: []string{"/data/scale"}}}
	c.put("note", map[string]string{"color": "red", "scale": "1"})
	created := len(c.states) - 1
	c.put("note", map[string]string{"color": "red", "scale": "2"})
	if out, notes, code := c.call("diff", "cm/note", "--from", shaOf(created)); code != 0 {
		t.Errorf("diff: exit code %d: %s%s", code, out, notes)
	}
	if out, notes, code := c.call("restore", "cm/note", "--to", shaOf(created), "--yes"); code != 0 || out != "1 unchanged\n" {
		t.Errorf("restore of the same: exit code %d: %s%s", code, out, notes)
	}
	c.put("note", map[string]string{"color": "blue", "scale": "2"})
	changed := len(c.states) - 1
	c.beforeWrite = func() {
		c.beforeWrite = nil
		c.put("note", map[string]string{"color": "blue", "scale": "3"})
	}
	out, notes, code := c.call("restore", "cm/note", "--to", shaOf(created), "--yes")
	if difference := cmp.Diff(map[string]any{"color": "red", "scale": "3"}, c.data("configmaps/note")); code != 0 || difference != "" ||
		strings.Contains(out, "/data/scale") {
		t.Errorf("restore: exit code %d: %s%s%s", code, out, notes, difference)
	}
	c.put("note", map[string]string{"color": "blue", "scale": "4"})
	out, notes, code = c.call("undo", c.changeName(changed), "--yes")
	if difference := cmp.Diff(map[string]any{"color": "red", "scale": "4"}, c.data("configmaps/note")); code != 0 || difference != "" {
		t.Errorf("undo of the update: exit code %d: %s%s%s", code, out, notes, difference)
	}
	if out, notes, code := c.call("undo", c.changeName(created), "--yes"); code != 0 || c.objects["configmaps/note"] != nil {
		t.Errorf("undo of the creation: exit code %d: %s%s", code, out, notes)
	}
}
