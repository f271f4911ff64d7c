// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package giteatest

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
)

// Repository is a repository of a Server. The administrator may read and write it.
type Repository struct {
	Owner, Name string

	server *Server
}

// NewRepository creates an empty private repository of a user or an organization, with the default branch main.
func (s *Server) NewRepository(t testing.TB, owner, name string) *Repository {
	t.Helper()
	s.Admin.do(t, http.MethodPost, "/admin/users/"+owner+"/repos", object{"name": name, "private": true, "default_branch": "main"}, nil)
	return &Repository{Owner: owner, Name: name, server: s}
}

// URL returns the URL of the repository over HTTP, without credentials.
func (r *Repository) URL() string { return fmt.Sprintf("%s/%s/%s.git", r.server.URL, r.Owner, r.Name) }

// SSHURL returns the URL of the repository over SSH.
func (r *Repository) SSHURL() string {
	return fmt.Sprintf("ssh://git@%s/%s/%s.git", r.server.ssh, r.Owner, r.Name)
}

// Path returns the path of the bare repository on disk. Its files may belong to another user.
func (r *Repository) Path() string {
	return filepath.Join(r.server.installed.folder, "repositories", strings.ToLower(r.Owner), strings.ToLower(r.Name)+".git")
}

// do sends a request about the repository as the administrator.
func (r *Repository) do(t testing.TB, method, path string, body, result any) {
	t.Helper()
	r.server.Admin.do(t, method, "/repos/"+r.Owner+"/"+r.Name+path, body, result)
}

// Rename renames the repository. Gitea redirects its old URL, until another repository has the old name.
func (r *Repository) Rename(t testing.TB, name string) {
	t.Helper()
	r.do(t, http.MethodPatch, "", object{"name": name}, nil)
	r.Name = name
}

// Delete deletes the repository.
func (r *Repository) Delete(t testing.TB) {
	t.Helper()
	r.do(t, http.MethodDelete, "", nil, nil)
}

// Archive makes the repository read-only, or writable again.
func (r *Repository) Archive(t testing.TB, archived bool) {
	t.Helper()
	r.do(t, http.MethodPatch, "", object{"archived": archived}, nil)
}

// AddCollaborator lets a user read, write or admin the repository. The user's earlier permission is replaced.
func (r *Repository) AddCollaborator(t testing.TB, user *User, permission string) {
	t.Helper()
	r.do(t, http.MethodPut, "/collaborators/"+user.Name, object{"permission": permission}, nil)
}

// RemoveCollaborator ends the permission of a user.
func (r *Repository) RemoveCollaborator(t testing.TB, user *User) {
	t.Helper()
	r.do(t, http.MethodDelete, "/collaborators/"+user.Name, nil, nil)
}

// AddDeployKey lets the owner of a key read the repository over SSH, and write to it unless readOnly is set.
func (r *Repository) AddDeployKey(t testing.TB, title, publicKey string, readOnly bool) {
	t.Helper()
	r.do(t, http.MethodPost, "/keys", object{"title": title, "key": publicKey, "read_only": readOnly}, nil)
}

// Protect protects the branches that a pattern such as main matches: pushes to them are refused, and pull requests to them can be merged.
func (r *Repository) Protect(t testing.TB, pattern string) {
	t.Helper()
	r.do(t, http.MethodPost, "/branch_protections", object{"rule_name": pattern, "enable_push": false}, nil)
}

// RequireSignatures protects the branches that a pattern matches: only signed commits can be pushed, whose signatures Gitea can verify.
func (r *Repository) RequireSignatures(t testing.TB, pattern string) {
	t.Helper()
	r.do(t, http.MethodPost, "/branch_protections", object{"rule_name": pattern, "enable_push": true, "require_signed_commits": true}, nil)
}

// Unprotect ends the protection of the branches that a pattern matches.
func (r *Repository) Unprotect(t testing.TB, pattern string) {
	t.Helper()
	r.do(t, http.MethodDelete, "/branch_protections/"+url.PathEscape(pattern), nil, nil)
}

// NewBranch creates a branch at the tip of another.
func (r *Repository) NewBranch(t testing.TB, name, from string) {
	t.Helper()
	r.do(t, http.MethodPost, "/branches", object{"new_branch_name": name, "old_branch_name": from}, nil)
}

// DeleteBranch deletes a branch.
func (r *Repository) DeleteBranch(t testing.TB, name string) {
	t.Helper()
	r.do(t, http.MethodDelete, "/branches/"+url.PathEscape(name), nil, nil)
}

// WriteFile commits a new file to a branch. The first commit of an empty repository creates the branch main.
func (r *Repository) WriteFile(t testing.TB, branch, path, content string) {
	t.Helper()
	r.do(t, http.MethodPost, "/contents/"+path, object{
		"branch": branch, "content": base64.StdEncoding.EncodeToString([]byte(content)), "message": "Write " + path,
	}, nil)
}
