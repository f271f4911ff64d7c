// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/mirror/internal/githost"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/githosttest"
)

// head is the branch of the destination of world.
const head = "slipstream/shop/main"

// proposing is a fixture whose destination proposes its changes to main at a Git host.
type proposing struct{ *fixture }

// newProposing starts a mirror that proposes to main, which has the file docs.
func newProposing(t *testing.T, kind githosttest.Kind, prepare ...func(*fixture)) *proposing {
	t.Helper()
	return &proposing{newFixture(t, append([]func(*fixture){perChange, func(s *fixture) {
		s.api = githosttest.New(t, kind, githosttest.WithBranches(func(branch string) (string, bool) {
			sha, err := s.run("rev-parse", "--verify", "refs/heads/"+branch)
			return sha, err == nil
		}))
		s.pollInterval = 50 * time.Millisecond
		s.host = func(context.Context, branchKey) (githost.Host, error) {
			transport := s.api.Client().Transport
			if s.hostUnlimited {
				transport = unlimited{s, transport}
			}
			return githost.New(githost.Options{
				Kind: githost.Kind(s.api.Kind()), RepoURL: s.api.RepoURL, APIURL: s.api.APIURL,
				Client: &http.Client{Transport: dying{s.process, transport}},
				Token: func(context.Context, string) (githost.Token, error) {
					return githost.Token{Value: githosttest.Token, Basic: s.api.Kind() == githosttest.AzureDevOps}, nil
				},
			})
		}
		s.in.repositories[0].Spec.AllowedBranches = []string{"slipstream/*/*"}
		s.in.destinations[0].Spec.Delivery = &v1alpha1.Delivery{
			Type: v1alpha1.DeliveryPullRequest, PullRequest: &v1alpha1.PullRequestDelivery{BranchPrefix: "slipstream/", Labels: []string{"mirror"}},
		}
		seed := t.TempDir()
		if err := os.MkdirAll(filepath.Join(s.git.root, "shop.git"), 0o750); err != nil {
			t.Fatal(err)
		}
		s.mustRun("init", "--quiet", "--bare", "--initial-branch=main", ".")
		s.mustRun("config", "http.receivepack", "true")
		s.mustRun("clone", "--quiet", ".", seed)
		if err := writeFile(seed, "docs", "read me"); err != nil {
			t.Fatal(err)
		}
		s.mustRun("-C", seed, "add", "--all")
		s.mustRun("-C", seed, "commit", "--quiet", "--message=first")
		s.mustRun("-C", seed, "push", "--quiet", "origin", "HEAD:main")
	}}, prepare...)...)}
}

// dying is a transport that fails once the process is dead, and at which the process can die.
type dying struct {
	process *process
	http.RoundTripper
}

// RoundTrip makes the request.
func (d dying) RoundTrip(request *http.Request) (*http.Response, error) {
	write := ""
	if request.Method != http.MethodGet {
		write = " writing"
	}
	if err := d.process.reach("before" + write + " call"); err != nil {
		return nil, err
	}
	response, err := d.RoundTripper.RoundTrip(request)
	if dead := d.process.reach("after" + write + " call"); dead != nil && err == nil {
		_ = response.Body.Close()
		return nil, dead
	}
	return response, err
}

// proposed waits until the branch of the destination has what the rule selects and is on top of main, and the newest pull request is open
// and says so.
func (p *proposing) proposed(number int64, changes int) githosttest.PullRequest {
	p.t.Helper()
	p.holds(head, "clusters/a", inShop)
	var found githosttest.PullRequest
	testkit.Eventually(p.t, fmt.Sprintf("pull request %d with %d changes", number, changes), func() error {
		all := p.api.PullRequests()
		if len(all) == 0 || all[len(all)-1].Number != number {
			return fmt.Errorf("%d pull requests", len(all))
		}
		found = all[len(all)-1]
		if found.State != githosttest.Open || !strings.Contains(found.Body, fmt.Sprintf("%d change", changes)) {
			return fmt.Errorf("%s: %s", found.State, found.Body)
		}
		if rows := strings.Count(found.Body, "\n| ") - 2; rows != min(changes, 200) {
			return fmt.Errorf("%d rows: %s", rows, found.Body)
		}
		if _, err := p.run("merge-base", "--is-ancestor", "main", head); err != nil {
			return errors.New("the branch is not on top of main")
		}
		return nil
	})
	p.atMostOneOpen()
	return found
}

func (p *proposing) atMostOneOpen() {
	p.t.Helper()
	open := 0
	for _, found := range p.api.PullRequests() {
		if found.State == githosttest.Open {
			open++
		}
	}
	if open > 1 {
		p.t.Errorf("%d pull requests are open", open)
	}
}

// state waits for a pull request's state in the status.
func (p *proposing) state(want v1alpha1.ProposalState) *v1alpha1.Proposal {
	p.t.Helper()
	var got *v1alpha1.Proposal
	testkit.Eventually(p.t, string(want), func() error {
		if got = p.record("main").Proposal; got == nil || got.State != want {
			return fmt.Errorf("proposal %+v", got)
		}
		return nil
	})
	return got
}

// says waits for a sentence in the status.
func (p *proposing) says(want string) {
	p.t.Helper()
	testkit.Eventually(p.t, want, func() error {
		if got := p.record("main").State; got != want {
			return fmt.Errorf("state %q", got)
		}
		return nil
	})
}

func (p *proposing) condition(kind string) metav1.Condition {
	d := p.destination("main")
	found := meta.FindStatusCondition(destinationConditions(d, p.publisher.failure(d), "", p.router.authors.reports(time.Now()), nil), kind)
	if found == nil {
		return metav1.Condition{}
	}
	return *found
}

// merge merges the branch of the destination into main, as a host does.
func (p *proposing) merge(number int64, arguments ...string) {
	p.t.Helper()
	o := p.otherWriter()
	for _, step := range append([][]string{{"fetch", "--quiet"}}, append([][]string{append([]string{"merge", "--quiet"}, arguments...)},
		[]string{"commit", "--quiet", "--allow-empty", "--message=merged"}, []string{"push", "--quiet", "origin", "HEAD:main"})...) {
		if err := o.git(step...); err != nil {
			p.t.Fatal(err)
		}
	}
	p.api.Merge(number, "alice")
}

func TestProposals(t *testing.T) {
	for _, kind := range githosttest.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			p := newProposing(t, kind)
			p.cluster.put(configMap("a"), "1")
			first := p.proposed(1, 1)
			if first.Head != head || first.Base != "main" || !strings.Contains(first.Body, "| added | `v1/configmaps shop/a` |") {
				t.Errorf("pull request %+v", first)
			}
			p.cluster.put(configMap("b"), "1")
			p.cluster.put(configMap("a"), "2")
			p.proposed(1, 2)
			p.says("2 changes proposed in #1")
			if files, err := p.files("main"); err != nil || len(files) != 1 {
				t.Errorf("main has %v, error %v", files, err)
			}

			p.merge(1, "--squash", "origin/"+head)
			merged := p.state(v1alpha1.ProposalMerged)
			if merged.EndedBy != "alice" && kind != githosttest.Gitea {
				t.Errorf("merged by %q", merged.EndedBy)
			}
			p.says("Up to date")
			p.cluster.put(configMap("b"), "2")
			p.cluster.remove(configMap("a"))
			second := p.proposed(2, 2)
			for _, row := range []string{"| removed | `v1/configmaps shop/a` |", "| changed | `v1/configmaps shop/b` |"} {
				if !strings.Contains(second.Body, row) {
					t.Errorf("body lacks %s:\n%s", row, second.Body)
				}
			}
		})
	}
}

func TestDeclinedProposal(t *testing.T) {
	p := newProposing(t, githosttest.GitHub)
	p.cluster.put(configMap("a"), "1")
	p.cluster.put(configMap("b"), "1")
	p.proposed(1, 2)
	p.api.CloseBy(1, "alice")
	p.state(v1alpha1.ProposalDeclined)
	p.says("2 changes declined in #1")
	declined := p.condition(v1alpha1.ConditionProposalDeclined)
	if declined.Status != metav1.ConditionTrue || !strings.Contains(declined.Message, "#1 was closed without a merge by alice") {
		t.Errorf("condition %+v", declined)
	}
	// Neither a comparison nor another process proposes them again.
	p.stop()
	p.start()
	p.idle()
	p.says("2 changes declined in #1")
	if all := p.api.PullRequests(); len(all) != 1 {
		t.Fatalf("%d pull requests", len(all))
	}
	// A change of another object is proposed alone.
	p.cluster.put(configMap("c"), "1")
	testkit.EventuallyTrue(t, "the second pull request", func() bool { return len(p.api.PullRequests()) == 2 })
	if body := p.api.PullRequests()[1].Body; !strings.Contains(body, "1 change of") || strings.Contains(body, "shop/a`") {
		t.Errorf("body: %s", body)
	}
	// The object changes.
	p.cluster.put(configMap("a"), "2")
	testkit.EventuallyTrue(t, "the change", func() bool { return strings.Contains(p.api.PullRequests()[1].Body, "2 changes of") })
	// A user asks.
	p.ask("now", false)
	p.proposed(2, 3)
	testkit.EventuallyTrue(t, "nothing is withheld", func() bool {
		return p.condition(v1alpha1.ConditionProposalDeclined).Status == metav1.ConditionFalse
	})
}

// TestDeclinedProposalIsNotRepeatedForIgnoredFields checks that a change of an ignored field does not propose a declined change again.
func TestDeclinedProposalIsNotRepeatedForIgnoredFields(t *testing.T) {
	p := newProposing(t, githosttest.GitHub, func(s *fixture) {
		s.in.destinations[0].Spec.Ignore = []v1alpha1.IgnoreRule{
			{Target: v1alpha1.IgnoreTarget{Kind: "configmap"}, Fields: []string{"/metadata/annotations/note"}},
		}
	})
	p.cluster.put(configMap("a"), "1", noted("first"))
	p.says("1 change proposed in #1")
	p.api.CloseBy(1, "alice")
	p.says("1 change declined in #1")
	p.idle()
	p.cluster.put(configMap("a"), "1", noted("second"))
	p.cluster.put(configMap("b"), "1")
	testkit.EventuallyTrue(t, "the second pull request", func() bool { return len(p.api.PullRequests()) == 2 })
	if body := p.api.PullRequests()[1].Body; !strings.Contains(body, "1 change of") || strings.Contains(body, "shop/a`") {
		t.Errorf("body: %s", body)
	}
	p.says("1 change proposed in #2")
}

// TestDeclinedRemovalIsNotRepeated declines the removal of the file of an object that a user has taken out of the mirror.
func TestDeclinedRemovalIsNotRepeated(t *testing.T) {
	leftOut := func(note string) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) {
			o.SetAnnotations(map[string]string{v1alpha1.AnnotationMirror: "false", "note": note})
		}
	}
	p := newProposing(t, githosttest.GitHub)
	p.cluster.put(configMap("a"), "1")
	p.proposed(1, 1)
	p.merge(1, "--squash", "origin/"+head)
	p.state(v1alpha1.ProposalMerged)
	p.cluster.put(configMap("a"), "1", leftOut("first"))
	p.says("1 change proposed in #2")
	p.api.CloseBy(2, "alice")
	p.says("1 change declined in #2")
	p.idle()
	p.cluster.put(configMap("a"), "1", leftOut("second"))
	p.cluster.put(configMap("b"), "1")
	testkit.EventuallyTrue(t, "the third pull request", func() bool { return len(p.api.PullRequests()) == 3 })
	if body := p.api.PullRequests()[2].Body; !strings.Contains(body, "1 change of") || strings.Contains(body, "shop/a`") {
		t.Errorf("body: %s", body)
	}
	p.says("1 change proposed in #3")
}

// moves changes the spec of the destination, and returns the destination.
func (p *proposing) moves(change func(*v1alpha1.GitDestination)) *v1alpha1.GitDestination {
	p.t.Helper()
	p.edit(func(d *v1alpha1.GitDestination) {
		d.Generation++
		change(d)
	})
	return p.in.destinations[0]
}

// TestPlaceOfProposalChanges declines a pull request, and changes the folder and the delivery then: what was declined there is written to
// the new place.
func TestPlaceOfProposalChanges(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.GitDestination){
		"folder": func(d *v1alpha1.GitDestination) { d.Spec.BaseFolder = "clusters/b" },
		"prefix": func(d *v1alpha1.GitDestination) { d.Spec.Delivery.PullRequest.BranchPrefix = "other/" },
		"push":   func(d *v1alpha1.GitDestination) { d.Spec.Delivery, d.Spec.Branch = nil, "env/a" },
	} {
		t.Run(name, func(t *testing.T) {
			p := newProposing(t, githosttest.GitHub, func(s *fixture) { s.in.repositories[0].Spec.AllowedBranches = []string{"*/*/*", "env/*"} })
			p.cluster.put(configMap("a"), "1")
			p.proposed(1, 1)
			p.api.CloseBy(1, "alice")
			p.state(v1alpha1.ProposalDeclined)
			d := p.moves(change)
			written, _ := d.Branches()
			p.holds(written, d.Spec.BaseFolder, inShop)
			p.stop()
			p.start()
			p.idle()
			p.holds(written, d.Spec.BaseFolder, inShop)
			if declined := p.condition(v1alpha1.ConditionProposalDeclined); declined.Status == metav1.ConditionTrue {
				t.Errorf("condition %+v", declined)
			}
			if files, err := p.files(written); err != nil || name != "push" && len(files) != 2 {
				t.Errorf("files %v, error %v", files, err)
			}
		})
	}
}

// TestBranchOfAnotherCluster has another cluster with the same destination propose from the same branch.
func TestBranchOfAnotherCluster(t *testing.T) {
	p := newProposing(t, githosttest.GitHub)
	p.cluster.put(configMap("a"), "1")
	p.proposed(1, 1)
	other := p.otherWriter()
	for _, step := range [][]string{
		{"fetch", "--quiet"}, {"reset", "--quiet", "--hard", "origin/" + head},
		{"commit", "--quiet", "--allow-empty", "--message=theirs\n\nX-ConfigButler-ClusterUID: elsewhere"}, {"push", "--quiet", "origin", "HEAD:" + head},
	} {
		for i := range step {
			step[i] = strings.ReplaceAll(step[i], `\n`, "\n")
		}
		if err := other.git(step...); err != nil {
			t.Fatal(err)
		}
	}
	refused := p.waitReady("main", v1alpha1.ReasonProposalRefused)
	if !strings.Contains(refused.Message, "another cluster (elsewhere)") {
		t.Errorf("message %q", refused.Message)
	}
}

// TestForcePushIsRefused has the remote refuse to replace the branch: further changes are added to it.
func TestForcePushIsRefused(t *testing.T) {
	p := newProposing(t, githosttest.GitHub)
	p.cluster.put(configMap("a"), "1")
	p.proposed(1, 1)
	p.mustRun("config", "receive.denyNonFastForwards", "true")
	other := p.otherWriter()
	if err := other.edit("theirs", other.write("docs", "new")); err != nil {
		t.Fatal(err)
	}
	refused := p.waitReady("main", v1alpha1.ReasonProposalRefused)
	if !strings.Contains(refused.Message, "force pushes") {
		t.Errorf("message %q", refused.Message)
	}
	p.cluster.put(configMap("b"), "1")
	p.holds(head, "clusters/a", inShop)
	testkit.EventuallyTrue(t, "the change in the text", func() bool { return strings.Contains(p.api.PullRequests()[0].Body, "2 changes of") })
	p.idle()
	if still := p.ready("main"); still.Reason != v1alpha1.ReasonProposalRefused {
		t.Errorf("Ready = %+v, although the branch is behind its base", still)
	}
}

// TestChangesAfterTheEndOfProposal pushes a change after the pull request has ended, and before the server knows. The next one has it,
// with the commit that it was made with.
func TestChangesAfterTheEndOfProposal(t *testing.T) {
	for _, kind := range githosttest.Kinds() {
		for _, ending := range []string{"merged", "declined"} {
			t.Run(string(kind)+" "+ending, func(t *testing.T) {
				p := newProposing(t, kind, func(s *fixture) { s.pollInterval = time.Hour })
				p.cluster.put(configMap("a"), "1")
				p.proposed(1, 1)
				if ending == "merged" {
					p.merge(1, "--squash", "origin/"+head)
				} else {
					p.api.CloseBy(1, "alice")
				}
				p.api.Down() // Otherwise the server may find it before the branch is read here.
				p.cluster.put(configMap("b"), "1")
				p.holds(head, "clusters/a", inShop)
				p.stop() // Another process asks the host at once.
				p.api.Up()
				p.start()
				testkit.EventuallyTrue(t, "the second pull request", func() bool { return len(p.api.PullRequests()) == 2 })
				if body := p.api.PullRequests()[1].Body; !strings.Contains(body, "1 change of") || !strings.Contains(body, "shop/b`") {
					t.Errorf("body: %s", body)
				}
				// A comparison would have made another commit, without the author.
				if subject := p.mustRun("log", "-1", "--format=%s", head); !strings.HasPrefix(subject, "[CREATE]") {
					t.Errorf("the commit is %s", subject)
				}
			})
		}
	}
}

func TestDraftProposalIsMadeReady(t *testing.T) {
	isDraft := func(found githosttest.PullRequest) bool {
		return found.Draft || strings.HasPrefix(found.Title, "WIP: ") || strings.HasPrefix(found.Title, "Draft: ")
	}
	for _, kind := range githosttest.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			p := newProposing(t, kind, func(s *fixture) { s.in.destinations[0].Spec.Delivery.PullRequest.Draft = true })
			p.cluster.put(configMap("a"), "1")
			if found := p.proposed(1, 1); !isDraft(found) {
				t.Errorf("pull request %+v", found)
			}
			p.api.Edit(1, func(found *githosttest.PullRequest) { found.Title, found.Draft = "Ready", false })
			p.cluster.put(configMap("b"), "1")
			if found := p.proposed(1, 2); isDraft(found) {
				t.Errorf("pull request %+v", found)
			}
		})
	}
}

// TestHostRecordsTheMergeLate moves the base before the host says that the pull request is merged. A later change is proposed at once.
func TestHostRecordsTheMergeLate(t *testing.T) {
	for _, how := range []string{"--squash", "--no-ff"} {
		t.Run(how, func(t *testing.T) {
			p := newProposing(t, githosttest.Gitea)
			p.cluster.put(configMap("a"), "1")
			p.proposed(1, 1)
			o := p.otherWriter()
			for _, step := range [][]string{{"fetch", "--quiet"}, {"merge", "--quiet", how, "--no-commit", "origin/" + head}} {
				if err := o.git(step...); err != nil {
					t.Fatal(err)
				}
			}
			p.cluster.put(configMap("b"), "1")
			p.proposed(1, 2)
			for _, step := range [][]string{{"commit", "--quiet", "--message=merged"}, {"push", "--quiet", "origin", "HEAD:main"}} {
				if err := o.git(step...); err != nil {
					t.Fatal(err)
				}
			}
			p.proposed(1, 1) // The branch is on top of the base, which has the first change.
			p.api.Merge(1, "alice")
			p.state(v1alpha1.ProposalOpen)
			p.proposed(2, 1)
		})
	}
}

func TestBaseOfProposalMoves(t *testing.T) {
	p := newProposing(t, githosttest.GitLab)
	p.cluster.put(configMap("a"), "1")
	p.proposed(1, 1)
	other := p.otherWriter()
	if err := other.edit("theirs", other.write("docs", "new")); err != nil {
		t.Fatal(err)
	}
	p.proposed(1, 1)
	// Others change the folder: it is proposed to change that back.
	if err := other.edit("theirs", other.write("clusters/a/core/v1/configmaps/shop/z.yaml", "foreign")); err != nil {
		t.Fatal(err)
	}
	p.proposed(1, 2)
	// The base gets what is proposed in another way: nothing is left to merge.
	files := p.mustRun("show", head+":clusters/a/core/v1/configmaps/shop/a.yaml")
	err := other.edit("by hand", func() error {
		if err := other.git("rm", "--quiet", "clusters/a/core/v1/configmaps/shop/z.yaml"); err != nil {
			return err
		}
		return other.write("clusters/a/core/v1/configmaps/shop/a.yaml", files+"\n")()
	})
	if err != nil {
		t.Fatal(err)
	}
	p.state(v1alpha1.ProposalEqual)
	closed := p.api.PullRequests()[0]
	if closed.State != githosttest.Closed || len(closed.Comments) != 1 || !strings.Contains(closed.Comments[0], "nothing to merge") {
		t.Errorf("pull request %+v", closed)
	}
	p.says("Up to date")
	// Its history is rewritten.
	p.cluster.put(configMap("a"), "2")
	p.proposed(2, 1)
	p.mustRun("update-ref", "refs/heads/main", "main~2")
	testkit.EventuallyTrue(t, "the object is missing in the base", func() bool {
		return strings.Contains(p.proposed(2, 1).Body, "| added | `v1/configmaps shop/a` |")
	})
}

func TestBranchOfProposalIsDeleted(t *testing.T) {
	p := newProposing(t, githosttest.GitLab)
	p.cluster.put(configMap("a"), "1")
	p.proposed(1, 1)
	p.mustRun("update-ref", "-d", "refs/heads/"+head)
	p.proposed(1, 1) // The pull request is open, so the branch is created again.
	p.merge(1, "--no-ff", "--no-commit", "origin/"+head)
	p.mustRun("update-ref", "-d", "refs/heads/"+head)
	p.state(v1alpha1.ProposalMerged)
	p.cluster.put(configMap("b"), "1")
	p.proposed(2, 1)
	p.api.CloseBy(2, "bob")
	p.mustRun("update-ref", "-d", "refs/heads/"+head)
	p.state(v1alpha1.ProposalDeclined)
	p.idle()
	if n := len(p.api.PullRequests()); n != 2 {
		t.Errorf("%d pull requests", n)
	}
}

func TestHostOfProposalsFails(t *testing.T) {
	p := newProposing(t, githosttest.Gitea)
	p.api.Down()
	p.cluster.put(configMap("a"), "1")
	p.holds(head, "clusters/a", inShop)
	ready := p.waitReady("main", v1alpha1.ReasonProposalFailed)
	if ready.Status != metav1.ConditionFalse {
		t.Errorf("Ready = %+v", ready)
	}
	p.api.Up()
	p.proposed(1, 1)
	p.waitReady("main", v1alpha1.ReasonSucceeded)
	p.api.Always(githosttest.Respond(http.StatusForbidden, `{"message":"token does not have at least one of required scope(s): [write:repository]"}`))
	p.cluster.put(configMap("b"), "1")
	refused := p.waitReady("main", v1alpha1.ReasonProposalRefused)
	if !strings.Contains(refused.Message, "write:repository") {
		t.Errorf("message %q", refused.Message)
	}
	p.api.Up()
	p.proposed(1, 2)
}

// TestHostRefusesBeforeNextUpdate has the host refuse a reviewer long before the next update of the text: that stays visible, and is
// tried again.
func TestHostRefusesBeforeNextUpdate(t *testing.T) {
	p := newProposing(t, githosttest.Gitea, func(s *fixture) {
		s.proposalInterval = time.Hour
		s.in.destinations[0].Spec.Delivery.PullRequest.Reviewers = []string{"newcomer"}
	})
	p.idle()
	p.cluster.put(configMap("a"), "1")
	p.waitReady("main", v1alpha1.ReasonProposalRefused)
	p.api.AddUser("newcomer")
	testkit.EventuallyTrue(t, "the reviewer", func() bool { return len(p.api.PullRequests()[0].Reviewers) == 1 })
	p.waitReady("main", v1alpha1.ReasonSucceeded)
}

func TestBurstWhileProposalIsOpen(t *testing.T) {
	const changes = 300
	p := newProposing(t, githosttest.GitHub)
	p.cluster.put(configMap("first"), "1")
	p.proposed(1, 1)
	for i := range changes {
		p.cluster.put(configMap(fmt.Sprint(i)), "1")
	}
	p.proposed(1, changes+1)
	if writes := p.process.times("before writing call"); writes > 100 {
		t.Errorf("%d writing calls for %d changes", writes, changes)
	}
}
