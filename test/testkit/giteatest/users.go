// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package giteatest

import (
	"net/http"
	"testing"
)

// User is a user of a Server.
type User struct {
	Name, Password string

	server *Server
}

func password(name string) string { return "password of " + name }

func address(name string) string { return name + "@example.com" }

// NewUser creates a user.
func (s *Server) NewUser(t testing.TB, name string) *User {
	t.Helper()
	u := &User{Name: name, Password: password(name), server: s}
	s.Admin.do(t, http.MethodPost, "/admin/users", object{
		"username": name, "password": u.Password, "email": address(name), "must_change_password": false,
	}, nil)
	return u
}

// NewOrganization creates an organization of the administrator.
func (s *Server) NewOrganization(t testing.TB, name string) {
	t.Helper()
	s.Admin.do(t, http.MethodPost, "/orgs", object{"username": name}, nil)
}

// Token creates an access token of the user with scopes such as write:repository, and returns it.
func (u *User) Token(t testing.TB, name string, scopes ...string) string {
	t.Helper()
	var created struct{ SHA1 string }
	u.do(t, http.MethodPost, "/users/"+u.Name+"/tokens", object{"name": name, "scopes": scopes}, &created)
	return created.SHA1
}

// RevokeToken deletes an access token of the user.
func (u *User) RevokeToken(t testing.TB, name string) {
	t.Helper()
	u.do(t, http.MethodDelete, "/users/"+u.Name+"/tokens/"+name, nil, nil)
}

// AddKey adds a public key, as ssh-keygen writes it, with which the user may read and write repositories over SSH.
func (u *User) AddKey(t testing.TB, title, publicKey string) {
	t.Helper()
	u.do(t, http.MethodPost, "/user/keys", object{"title": title, "key": publicKey}, nil)
}

// Email returns the user's address, which is activated.
func (u *User) Email() string { return address(u.Name) }

// AddOpenPGPKey adds an armored public key with the user's address. Gitea verifies signatures of commits with it.
func (u *User) AddOpenPGPKey(t testing.TB, publicKey string) {
	t.Helper()
	u.do(t, http.MethodPost, "/user/gpg_keys", object{"armored_public_key": publicKey}, nil)
}
