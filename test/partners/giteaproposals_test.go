// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package partners

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authuser "k8s.io/apiserver/pkg/authentication/user"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/giteatest"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// proposalScopes are the scopes that the documentation names for a token with which pull requests are opened.
var proposalScopes = []string{"write:repository", "write:issue"}

// proposals is a namespace whose ConfigMaps are proposed to the branch main of a repository.
type proposals struct {
	*giteaCluster
	*mirrortest.Mirror
	repository *giteatest.Repository
	// bot is the user who opens the pull requests.
	bot *giteatest.User
}

// newProposalCluster starts a cluster whose server learns the authors of changes.
func newProposalCluster(t *testing.T) *giteaCluster {
	t.Helper()
	gitea := giteatest.Start(t)
	gitea.NewOrganization(t, organization)
	s := mirrortest.NewAdminCluster(t, devcluster.Options{
		Parts: []string{"slipstream-server-mirrored", "slipstream-server-credentials"}, Admission: true,
	})
	return &giteaCluster{AdminCluster: s, gitea: gitea, client: mirrortest.Client(t, s.Admin())}
}

// newProposals creates a namespace, and a repository with its name whose branch main has a file. The destination has the fields of
// spec.delivery.pullRequest in YAML.
func (s *giteaCluster) newProposals(t *testing.T, name, fields string) *proposals {
	t.Helper()
	p := s.newRepository(t, name, fmt.Sprintf("delivery: {type: PullRequest, pullRequest: {%s}}", fields))
	p.Branch = "slipstream/" + name + "/main"
	return p
}

// newRepository creates a namespace and a repository, with a destination that has a line more.
func (s *giteaCluster) newRepository(t *testing.T, name, line string) *proposals {
	t.Helper()
	p := &proposals{giteaCluster: s, repository: s.gitea.NewRepository(t, organization, name), bot: s.gitea.NewUser(t, "bot-"+name)}
	p.repository.WriteFile(t, "main", "README.md", "The clusters of the shop.\n")
	p.repository.AddCollaborator(t, p.bot, "write")
	s.CreateNamespace(t, name)
	p.token(t, "first", proposalScopes...)
	p.Mirror = s.NewMirrorTo(t, name, mirrortest.Remote{URL: p.repository.URL(), Folder: p.repository.Path(), Secret: "git"},
		"granularity: PerChange", line)
	p.Patch(t, name, "gitrepoconfig/main", `{"spec": {"allowedBranches": ["main", "slipstream/*/*"], "host": {"type": "Gitea"}}}`)
	p.Watch(t, "config", "configmaps")
	return p
}

// token puts a token with scopes into the Secret.
func (p *proposals) token(t *testing.T, name string, scopes ...string) {
	t.Helper()
	namespace := p.repository.Name
	p.secret(t, namespace, "password: "+p.bot.Token(t, name, scopes...))
}

// as returns a client of a user who may change everything.
func (s *giteaCluster) as(t *testing.T, name string) kubernetes.Interface {
	t.Helper()
	return mirrortest.ClientOf(t, s.Admin(), func(config *rest.Config) (kubernetes.Interface, error) {
		config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{authuser.SystemPrivilegedGroup}}
		return kubernetes.NewForConfig(config)
	})
}

// put creates or changes a ConfigMap.
func (p *proposals) put(t *testing.T, by kubernetes.Interface, name, value string) {
	t.Helper()
	object := applycorev1.ConfigMap(name, p.Namespace).WithData(map[string]string{"value": value})
	if _, err := by.CoreV1().ConfigMaps(p.Namespace).Apply(t.Context(), object, metav1.ApplyOptions{FieldManager: "test", Force: true}); err != nil {
		t.Error(err)
	}
}

// open waits until one pull request is open, the one with the number, whose body has texts.
func (p *proposals) open(t *testing.T, number int, texts ...string) giteatest.PullRequest {
	t.Helper()
	var found giteatest.PullRequest
	mirrortest.Eventually(t, fmt.Sprintf("pull request %d of %s with %q", number, p.Namespace, texts), func(ctx context.Context) error {
		open := p.openOnes(t)
		if len(open) != 1 || open[0].Number != number {
			return fmt.Errorf("open pull requests %+v; %s", open, p.said(ctx))
		}
		found = open[0]
		for _, text := range texts {
			if !strings.Contains(found.Body, text) {
				return fmt.Errorf("body:\n%s\n%s", found.Body, p.said(ctx))
			}
		}
		return nil
	})
	return found
}

// openOnes returns the open pull requests. There must never be two.
func (p *proposals) openOnes(t *testing.T) []giteatest.PullRequest {
	t.Helper()
	open := p.repository.PullRequests(t, "open")
	if len(open) > 1 {
		t.Fatalf("open pull requests %+v", open)
	}
	return open
}

// proposed waits for an open pull request with a number of changes, and a branch that equals the cluster and is on top of main.
func (p *proposals) proposed(t *testing.T, number, changes int, texts ...string) giteatest.PullRequest {
	t.Helper()
	p.Equal(t, p.client)
	count := fmt.Sprintf("%d changes of cluster", changes)
	if changes == 1 {
		count = "1 change of cluster"
	}
	p.open(t, number, append(texts, count)...)
	mirrortest.Eventually(t, "the branch is on top of main", func(ctx context.Context) error {
		_, err := p.Git(ctx, "merge-base", "--is-ancestor", "main", p.Branch)
		return err
	})
	p.HasField(t, p.Namespace, "gds/main", "{.status.proposal.number} {.status.proposal.state} {.status.proposal.changes}",
		fmt.Sprintf("%d Open %d", number, changes))
	p.Ready(t, p.Namespace, "gitdestination/main")
	return p.repository.PullRequest(t, number)
}

// said returns what the destination says, for messages.
func (p *proposals) said(ctx context.Context) string {
	ready, _ := p.Try.Field(ctx, p.Namespace, "gitdestination/main", `{.status.conditions[?(@.type=="Ready")]}`)
	state, _ := p.Try.Field(ctx, p.Namespace, "gds/main", "{.status.state} {.status.proposal}")
	return ready + " " + state
}

// ends waits until the status has the end of a pull request.
func (p *proposals) ends(t *testing.T, number int, state string) {
	t.Helper()
	p.HasField(t, p.Namespace, "gds/main", "{.status.proposal.number} {.status.proposal.state}", fmt.Sprintf("%d %s", number, state))
}

// merge merges a pull request once Gitea has found that it can be.
func (p *proposals) merge(t *testing.T, number int, method string) {
	t.Helper()
	mirrortest.Eventually(t, "Gitea has found no conflict", func(context.Context) error {
		if !p.repository.PullRequest(t, number).Mergeable {
			return errors.New("not mergeable")
		}
		return nil
	})
	p.repository.Merge(t, number, method)
}

// authors returns the authors of the commits that main lacks, oldest first, without repetition.
func (p *proposals) authors(t *testing.T) []string {
	t.Helper()
	out, err := p.Git(t.Context(), "log", "--reverse", "--format=%an", "main.."+p.Branch)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Compact(strings.Split(strings.TrimSpace(out), "\n"))
}

// others is a clone with which others change the repository.
type others struct {
	folder string
}

func (p *proposals) others(t *testing.T) *others {
	t.Helper()
	o := &others{folder: t.TempDir()}
	address, err := url.Parse(p.repository.URL())
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.UserPassword(p.gitea.Admin.Name, p.gitea.Admin.Password)
	o.git(t, "clone", "--quiet", address.String(), ".")
	return o
}

func (o *others) git(t *testing.T, arguments ...string) {
	t.Helper()
	all := append([]string{"-C", o.folder, "-c", "user.name=Olga", "-c", "user.email=olga@example.com"}, arguments...)
	if out, err := exec.CommandContext(t.Context(), "git", all...).CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v: %s", strings.Join(arguments, " "), err, out)
	}
}

// commit writes a file and commits it.
func (o *others) commit(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(o.folder, path)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(o.folder, path), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	o.git(t, "add", "--all")
	o.git(t, "commit", "--quiet", "--message=Write "+path)
}
