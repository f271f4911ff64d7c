// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/testkit/people"
)

// command is a command of the plugin, with its exit code and a part of what it prints.
type command struct {
	line string
	code int
	want string
}

// testPlugin runs the commands that request and decide as dave, who may edit. testCommands has what each prints.
func (s *testCluster) testPlugin(t *testing.T) {
	c := s.newFixture(t, "plugged", shop, workloads("api", "worker"))
	s.Apply(t, people.In(c.team, people.Sources, people.Server))
	s.NewMirror(t, c.team).Watch(t, "settings", "configmaps")
	c.mustApply(t, "alice")
	s.dave.Run(t, "label", "-n", c.team, "envt/alice", "team=a")
	c.follow(t, s.dave,
		command{line: "sync alice", want: "environment/alice: Synced (alice-"},
	)
	c.expectImages(t, map[string]string{"api": "shop/api:1", "worker": "shop/worker:1"})

	c.setImage(t, "api", "shop/api:2")
	c.waitForRevision(t, "alice", 2)
	c.waitForStatus(t, "alice", "1 workload changed")
	c.follow(t, s.dave,
		command{line: "dismiss alice", want: "environment/alice: Dismissed what the catalog offers"},
		command{line: "undismiss alice", want: "environment/alice: What was dismissed is offered again"},
		command{line: "rediscover alice", want: "environment/alice: What workloads refer to has been found anew"},
		command{line: "sync alice --dry-run", want: "~ Deployment/api"},
		command{line: "sync -l team=a", want: "environment/alice   Synced"},
	)
	c.expectImages(t, map[string]string{"api": "shop/api:2", "worker": "shop/worker:1"})
	c.follow(t, s.dave, command{line: "rollback alice", want: "Went to what revision 1 was"})
	c.expectImages(t, map[string]string{"api": "shop/api:1", "worker": "shop/worker:1"})
	c.follow(t, s.dave,
		command{line: "unpin alice", want: "environment/alice unpinned"},
		command{line: "sync alice --workloads deployment/api", want: "Synced"},
	)
	c.expectImages(t, map[string]string{"api": "shop/api:2", "worker": "shop/worker:1"})
	c.testPluginRetry(t)
	c.testPluginResolve(t)
	c.testPluginOtherKinds(t)
}

// follow runs commands in the namespace of the team.
func (c *fixture) follow(t *testing.T, by *people.Person, commands ...command) {
	t.Helper()
	plugin := c.plugin(t, by)
	for _, each := range commands {
		out, err := plugin.Run(t.Context(), append(strings.Fields(each.line), "-n", c.team)...)
		code := 0
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			code = exit.ExitCode()
		}
		if text := fmt.Sprint(out, err); code != each.code || !strings.Contains(text, each.want) {
			t.Fatalf("%s by %s: exit code %d, want %d and %q: %s%s", each.line, by.Name, code, each.code, each.want, text, c.describe(t.Context()))
		}
	}
}

// testPluginRetry has a sync fail because of an object that the environment has not written.
func (c *fixture) testPluginRetry(t *testing.T) {
	t.Helper()
	const carol = "plugged-carol"
	c.newTarget(t, carol)
	c.dave.Run(t, "create", "configmap", "settings", "-n", carol)
	c.mustApplyIn(t, "carol", carol)
	c.follow(t, c.dave, command{line: "sync carol", code: 3, want: "ConfigMap " + carol + "/settings"})
	c.dave.Run(t, "delete", "configmap", "settings", "-n", carol)
	c.follow(t, c.dave,
		command{line: "retry environment/carol", want: "Synced"},
		command{line: "retry environment/carol", code: 4, want: "nothing is left to try"},
		command{line: "retry carol-x", code: 2, want: "not found"},
	)
}

// testPluginResolve has a field changed in a Branch and in its catalog.
func (c *fixture) testPluginResolve(t *testing.T) {
	t.Helper()
	const bob = "plugged-bob"
	c.newTarget(t, bob)
	c.mustApplyIn(t, "bob", bob, "type: Branch", "branchWorkloads: [{kind: Deployment, name: api}]")
	c.follow(t, c.dave,
		command{line: "resolve bob", want: "environment/bob has no conflicts"},
		command{line: "sync bob", want: "Synced"},
	)
	patch(t, c.dave, bob, "api", fmt.Sprintf(imageAndMemory, "shop/api:dave", "1Gi"))
	patch(t, c.ann, c.source, "api", fmt.Sprintf(imageAndMemory, "shop/api:3", "128Mi"))
	c.waitForRevision(t, "bob", 3)
	c.follow(t, c.dave, command{line: "sync bob", code: 4, want: "decide about them with kubectl slipstream resolve bob -n " + c.team})
	c.waitForStatus(t, "bob", "Conflict: 2 fields")
	c.follow(t, c.dave,
		command{line: "resolve bob", code: 4, want: "  catalog  \"shop/api:3\"\n"},
		command{line: "resolve bob --keep=/spec/paused", code: 2, want: "--keep=/spec/paused is none of the conflicts"},
		command{line: "resolve bob --keep=" + imageField + " --take", want: "environment/bob: Synced"},
	)
	objects := c.objectsIn(t, bob)
	main := container(t, objects["Deployment api"], "main")
	if image, memory := text(main, "image"), text(main, "resources", "limits", "memory"); image != "shop/api:dave" || memory != "128Mi" {
		t.Errorf("after the decisions: image %s, memory %s", image, memory)
	}
}

// testPluginOtherKinds runs the commands for catalogs, destinations and pipelines.
func (c *fixture) testPluginOtherKinds(t *testing.T) {
	t.Helper()
	c.follow(t, c.dave,
		command{line: "sync catalog/shop", want: "catalog/shop: The namespace " + c.source + " has been read"},
		command{line: "pause shop --for 1h", want: "catalog/shop paused until "},
		command{line: "sync catalog/shop", code: 4, want: "changes of the source wait until"},
		command{line: "resume shop", want: "catalog/shop resumed"},
		command{line: "rollback catalog/shop --to 1", want: "Went to what revision 1 was"},
		command{line: "unpin catalog/shop", want: "catalog/shop unpinned"},
		command{line: "sync gitdestination/main", want: "gitdestination/main: Compared "},
		command{line: "suspend main", want: "gitdestination/main suspended"},
		command{line: "sync gitdestination/main", code: 4, want: "spec.suspend is set"},
		command{line: "unsuspend main", want: "gitdestination/main no longer suspended"},
	)
}
