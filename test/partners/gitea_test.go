// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package partners

import (
	"context"
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"golang.org/x/crypto/ssh"
	"k8s.io/client-go/kubernetes"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/giteatest"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// giteaCluster is a cluster that is mirrored to repositories of an organization of a Gitea.
type giteaCluster struct {
	*mirrortest.AdminCluster
	gitea  *giteatest.Server
	client kubernetes.Interface
}

// organization is the owner of the repositories.
const organization = "shop"

func newGiteaCluster(t *testing.T) *giteaCluster {
	t.Helper()
	gitea := giteatest.Start(t)
	gitea.NewOrganization(t, organization)
	s := mirrortest.NewAdminCluster(t, devcluster.Options{Parts: []string{"slipstream-server-mirrored", "slipstream-server-credentials"}})
	return &giteaCluster{AdminCluster: s, gitea: gitea, client: mirrortest.Client(t, s.Admin())}
}

// giteaMirror is a namespace whose ConfigMaps are mirrored to a repository.
type giteaMirror struct {
	*giteaCluster
	*mirrortest.Mirror
	repository *giteatest.Repository
	// bot is the user who may write to the repository.
	bot *giteatest.User
}

// newMirror creates a namespace, a repository with its name, and a user who may write to it. configure returns the URL of the repository
// and the lines of the Secret with the credentials.
func (s *giteaCluster) newMirror(t *testing.T, name string, configure func(*giteaMirror) (url string, secret []string)) *giteaMirror {
	t.Helper()
	m := &giteaMirror{
		giteaCluster: s, repository: s.gitea.NewRepository(t, organization, name), bot: s.gitea.NewUser(t, "bot-"+name),
	}
	m.repository.AddCollaborator(t, m.bot, "write")
	url, secret := configure(m)
	s.CreateNamespace(t, name)
	s.secret(t, name, secret...)
	m.Mirror = s.NewMirrorTo(t, name, mirrortest.Remote{URL: url, Folder: m.repository.Path(), Secret: "git"})
	m.Watch(t, "config", "configmaps")
	m.change(t, "first")
	m.equal(t)
	return m
}

// newTokenMirror creates a mirror over HTTP with an access token of the scope that the documentation names.
func (s *giteaCluster) newTokenMirror(t *testing.T, name string) *giteaMirror {
	t.Helper()
	return s.newMirror(t, name, func(m *giteaMirror) (string, []string) {
		return m.repository.URL(), []string{"password: " + m.bot.Token(t, "first", "write:repository")}
	})
}

// secret creates or replaces the Secret with the credentials of a namespace.
func (s *giteaCluster) secret(t *testing.T, namespace string, lines ...string) {
	t.Helper()
	s.Apply(t, fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: git, namespace: %s}\nstringData:\n  %s\n", namespace,
		strings.Join(lines, "\n  ")))
}

// change creates or changes some ConfigMaps.
func (m *giteaMirror) change(t *testing.T, value string) {
	t.Helper()
	for i := range 3 {
		m.ConfigMap(t, m.Namespace, fmt.Sprintf("c%d", i), fmt.Sprintf("value: '%s %d'", value, i))
	}
}

// equal waits until the branch equals the cluster and everything is ready.
func (m *giteaMirror) equal(t *testing.T) {
	t.Helper()
	m.Equal(t, m.client)
	m.Settled(t)
	m.Ready(t, m.Namespace, "gitrepoconfig/main", "gitdestination/main", "watchrule/config")
	m.Intact(t)
}

// refused waits until the repository and the destination are not ready for a reason, with a message that contains a text.
func (m *giteaMirror) refused(t *testing.T, reason, text string) {
	t.Helper()
	const template = `{range .status.conditions[?(@.type=="Ready")]}{.status} {.reason}: {.message}{end}`
	for _, object := range []string{"gitrepoconfig/main", "gitdestination/main"} {
		mirrortest.Eventually(t, object+" is not ready: "+reason+": "+text, func(ctx context.Context) error {
			got, err := m.Try.Field(ctx, m.Namespace, object, template)
			if err == nil && (!strings.HasPrefix(got, "False "+reason+": ") || !strings.Contains(got, text)) {
				err = errors.New(got)
			}
			return err
		})
	}
}

// says waits until the message of the ready repository contains a text.
func (m *giteaMirror) says(t *testing.T, text string) {
	t.Helper()
	mirrortest.Eventually(t, "the repository says "+text, func(ctx context.Context) error {
		message, err := m.Try.Field(ctx, m.Namespace, "gitrepoconfig/main", `{.status.conditions[?(@.type=="Ready")].message}`)
		if err == nil && !strings.Contains(message, text) {
			err = errors.New(message)
		}
		return err
	})
}

func TestGitea(t *testing.T) {
	t.Parallel()
	s := newGiteaCluster(t)
	t.Run("Together", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T, *giteaCluster){
			"HTTP":            overHTTP,
			"SSH":             overSSH,
			"ProtectedBranch": protectedBranch,
			"Scopes":          scopes,
			"Permission":      permission,
			"Rotation":        rotatedToken,
			"Deleted":         deletedRepository,
			"Renamed":         renamedRepository,
			"Archived":        archivedRepository,
			"Signed":          signedCommits,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, s)
			})
		}
	})
	t.Run("Stopped", func(t *testing.T) { stoppedGitea(t, s) })
}

// overHTTP tests a mirror with a token of the scope that the documentation names.
func overHTTP(t *testing.T, s *giteaCluster) {
	m := s.newTokenMirror(t, "http")
	m.change(t, "second")
	m.Delete(t, m.Namespace, "configmap/c0")
	m.equal(t)
}

// overSSH tests deploy keys, users' keys, and keys that may not write or are unknown.
func overSSH(t *testing.T, s *giteaCluster) {
	private, public := newKeys(t)
	m := s.newMirror(t, "ssh", func(m *giteaMirror) (string, []string) {
		m.repository.AddDeployKey(t, "mirror", public, false)
		return m.repository.SSHURL(), s.sshSecret(private)
	})
	m.change(t, "second")
	m.Delete(t, m.Namespace, "configmap/c0")
	m.equal(t)

	readOnly, public := newKeys(t)
	m.repository.AddDeployKey(t, "reader", public, true)
	s.secret(t, m.Namespace, s.sshSecret(readOnly)...)
	m.change(t, "read-only")
	m.refused(t, "AuthenticationFailed", "reader is not authorized to write to shop/ssh")

	unknown, _ := newKeys(t)
	s.secret(t, m.Namespace, s.sshSecret(unknown)...)
	m.refused(t, "AuthenticationFailed", "the server refuses the credentials")

	private, public = newKeys(t)
	m.bot.AddKey(t, "mirror", public)
	s.secret(t, m.Namespace, s.sshSecret(private)...)
	m.equal(t)

	m.rename(t, "ssh-since")
	m.change(t, "renamed")
	m.equal(t)

	m.repository.Delete(t)
	m.change(t, "deleted")
	m.refused(t, "RepositoryNotFound", "Push to create is not enabled")
	m.recreate(t)
	m.equal(t)
}

// rename renames the repository.
func (m *giteaMirror) rename(t *testing.T, name string) {
	t.Helper()
	m.repository.Rename(t, name)
	m.Repository = m.repository.Path()
}

// recreate creates the deleted repository again, empty, with its first name.
func (m *giteaMirror) recreate(t *testing.T) {
	t.Helper()
	m.repository = m.gitea.NewRepository(t, organization, m.Namespace)
	m.repository.AddCollaborator(t, m.bot, "write")
	m.Repository = m.repository.Path()
}

// protectedBranch protects the branch during changes. None may be lost.
func protectedBranch(t *testing.T, s *giteaCluster) {
	m := s.newTokenMirror(t, "protected")
	m.repository.Protect(t, "main")
	m.change(t, "second")
	m.refused(t, "PushRejected", "pre-receive hook declined: error: Not allowed to push to protected branch main")
	m.change(t, "third")
	m.Delete(t, m.Namespace, "configmap/c0")
	m.repository.Unprotect(t, "main")
	m.equal(t)
}

// scopes tests tokens whose scopes do not permit everything that the mirror does.
func scopes(t *testing.T, s *giteaCluster) {
	m := s.newTokenMirror(t, "scopes")
	m.bot.RevokeToken(t, "first")
	m.change(t, "second")
	for _, test := range []struct {
		name, lacks string
		scopes      []string
	}{
		{"read", "may read the repository, but not write to it", []string{"read:repository"}},
		{"issues", "may neither read the repository nor write to it", []string{"write:issue"}},
		{"read again", "may read the repository, but not write to it", []string{"read:repository", "write:issue"}},
		{"public", "may neither read the repository nor write to it", []string{"public-only", "write:repository"}},
	} {
		s.secret(t, m.Namespace, "password: "+m.bot.Token(t, test.name, test.scopes...))
		m.refused(t, "AuthenticationFailed", "the credentials "+test.lacks+": 403 Forbidden")
	}
	s.secret(t, m.Namespace, "password: "+m.bot.Token(t, "write", "write:repository"))
	m.equal(t)
}

// permission tests a token with the scope, of a user who lacks the permission.
func permission(t *testing.T, s *giteaCluster) {
	m := s.newTokenMirror(t, "permission")
	m.repository.AddCollaborator(t, m.bot, "read")
	m.change(t, "second")
	m.refused(t, "PushRejected", "User permission denied for writing")
	m.repository.RemoveCollaborator(t, m.bot)
	m.refused(t, "RepositoryNotFound", "404 Not Found")
	m.repository.AddCollaborator(t, m.bot, "write")
	m.equal(t)
}

// rotatedToken revokes the token, and then replaces the Secret.
func rotatedToken(t *testing.T, s *giteaCluster) {
	m := s.newTokenMirror(t, "rotated")
	m.bot.RevokeToken(t, "first")
	m.change(t, "second")
	m.refused(t, "AuthenticationFailed", "the server refuses the credentials: 401 Unauthorized")
	s.secret(t, m.Namespace, "password: "+m.bot.Token(t, "second", "write:repository"))
	m.equal(t)
}

// deletedRepository deletes the repository and creates it again. The new one gets everything.
func deletedRepository(t *testing.T, s *giteaCluster) {
	m := s.newTokenMirror(t, "deleted")
	m.repository.Delete(t)
	m.change(t, "second")
	m.refused(t, "RepositoryNotFound", "the server knows no such repository: 404 Not Found")
	m.recreate(t)
	m.equal(t)
}

// renamedRepository renames the repository. Gitea redirects, so the mirror continues, and the condition names the new URL.
func renamedRepository(t *testing.T, s *giteaCluster) {
	m := s.newTokenMirror(t, "renamed")
	m.rename(t, "renamed-since")
	m.change(t, "second")
	m.equal(t)
	// The repository is checked again when its spec changes.
	m.Patch(t, m.Namespace, "gitrepoconfig/main", `{"spec": {"push": {"maxCommits": 100}}}`)
	m.says(t, "The server redirects to "+strings.TrimSuffix(m.repository.URL(), ".git"))
	m.Patch(t, m.Namespace, "gitrepoconfig/main", fmt.Sprintf(`{"spec": {"repoUrl": %q}}`, m.repository.URL()))
	m.change(t, "third")
	m.equal(t)
	if got := m.Field(t, m.Namespace, "gitrepoconfig/main", `{.status.conditions[?(@.type=="Ready")].message}`); strings.Contains(got, "redirects") {
		t.Errorf("message %q with the new URL", got)
	}
}

// archivedRepository makes the repository read-only and writable again.
func archivedRepository(t *testing.T, s *giteaCluster) {
	m := s.newTokenMirror(t, "archived")
	m.repository.Archive(t, true)
	m.change(t, "second")
	m.refused(t, "AuthenticationFailed", "but not write to it: 403 Forbidden: This repo is archived")
	m.repository.Archive(t, false)
	m.equal(t)
}

// signedCommits requires signatures that Gitea can verify. Changes that wait for a key are signed with it, and none is lost.
func signedCommits(t *testing.T, s *giteaCluster) {
	m := s.newTokenMirror(t, "signed")
	m.repository.RequireSignatures(t, "main")
	m.change(t, "second")
	m.refused(t, "PushRejected", "pre-receive hook declined") // This version of Gitea does not say more.
	private, public := newOpenPGPKey(t, m.bot.Email())
	m.bot.AddOpenPGPKey(t, public)
	m.Apply(t, fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: signing, namespace: %s}, stringData: {git.asc: %q}}", m.Namespace, private))
	m.Patch(t, m.Namespace, "gitrepoconfig/main", fmt.Sprintf(`{"spec": {"commit": {"committer": {"name": "Mirror", "email": %q},
		"signing": {"secretRef": {"name": "signing"}, "format": "OpenPGP"}}}}`, m.bot.Email()))
	m.equal(t)
	m.change(t, "third")
	m.equal(t)
}

// newOpenPGPKey returns a new key with an address, and its public key.
func newOpenPGPKey(t *testing.T, email string) (private, public string) {
	t.Helper()
	entity, err := openpgp.NewEntity("Mirror", "", email, &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA})
	if err != nil {
		t.Fatal(err)
	}
	armored := func(kind string, serialize func(io.Writer) error) string {
		var text strings.Builder
		out, err := armor.Encode(&text, kind, nil)
		if err == nil {
			err = errors.Join(serialize(out), out.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		return text.String()
	}
	private = armored(openpgp.PrivateKeyType, func(out io.Writer) error { return entity.SerializePrivate(out, nil) })
	return private, armored(openpgp.PublicKeyType, entity.Serialize)
}

// stoppedGitea stops Gitea during changes.
func stoppedGitea(t *testing.T, s *giteaCluster) {
	m := s.newTokenMirror(t, "stopped")
	s.gitea.Stop(t)
	m.change(t, "second")
	m.refused(t, "RepositoryUnreachable", "connection refused")
	m.Delete(t, m.Namespace, "configmap/c0")
	s.gitea.StartAgain(t)
	m.equal(t)
}

// newKeys returns a new key for SSH, and its public key.
func newKeys(t *testing.T) (private, public string) {
	t.Helper()
	publicKey, privateKey, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(privateKey, "")
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(publicKey)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(block)), string(ssh.MarshalAuthorizedKey(key))
}

// sshSecret returns the lines of a Secret for SSH.
func (s *giteaCluster) sshSecret(private string) []string {
	return []string{fmt.Sprintf("ssh-privatekey: %q", private), fmt.Sprintf("known_hosts: %q", s.gitea.KnownHosts)}
}
