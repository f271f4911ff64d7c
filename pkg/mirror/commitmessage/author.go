// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package commitmessage

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/configbutler/slipstream/pkg/kube/texttemplate"
)

const (
	// maxName and maxEmail bound the parts of an identity, in bytes; usernames have any length.
	maxName  = 256
	maxEmail = 320
	// maxIdentity bounds the output of a template, in bytes, before its parts are shortened.
	maxIdentity = 16 << 10
	// maxGroups bounds how many groups a template gets.
	maxGroups = 100
)

// User is the input of an author template. Unknown fields are empty.
type User struct {
	// Username is the Kubernetes user; Name and Email come from the identity provider.
	Username, Name, Email string
	Groups                []string
	// Cluster is the uid of the cluster.
	Cluster string
}

// clean returns the user with each field on one line.
func (u User) clean() User {
	groups := make([]string, min(len(u.Groups), maxGroups))
	for i := range groups {
		groups[i] = oneLine(u.Groups[i])
	}
	return User{
		Username: oneLine(u.Username), Name: oneLine(u.Name), Email: oneLine(u.Email), Groups: groups, Cluster: oneLine(u.Cluster),
	}
}

// AuthorTemplate renders the author of a commit. Nil renders the default.
type AuthorTemplate struct{ parsed *texttemplate.Template }

// ParseAuthor parses a template that writes "Name <email>"; empty is none. The error names the line and what is wrong in it.
func ParseAuthor(text string) (*AuthorTemplate, error) {
	if text == "" {
		return nil, nil
	}
	parsed, err := texttemplate.Parse(text, User{})
	if err != nil {
		return nil, err
	}
	t := &AuthorTemplate{parsed: parsed}
	for what, user := range map[string]User{
		"a user": {
			Username: "jane", Name: "Jane Doe", Email: "jane@example.com", Groups: []string{"developers"}, Cluster: "7e57",
		},
		"a user of whom only the username is known": {Username: "system:serviceaccount:shop:web", Cluster: "7e57"},
	} {
		if _, _, err := t.run(user); err != nil {
			return nil, fmt.Errorf("for %s: %w", what, err)
		}
	}
	return t, nil
}

// managerEmail is the address of all field managers. No user has it: the domain invalid receives no mail (RFC 2606), and
// Identity never returns it.
const managerEmail = "field-manager@slipstream.invalid"

// Manager returns the author for a field manager. No template applies, because clients choose the name of their field
// manager: a client that names it jane must not appear as the user jane.
func Manager(manager string) (name, email string) {
	const suffix = "(field manager)"
	return strings.TrimSpace(shortened(oneLine(manager), maxName-len(suffix)-1) + " " + suffix), managerEmail
}

// Identity returns the author. The default replaces a part that the template leaves empty, and both if the template fails.
func (t *AuthorTemplate) Identity(user User) (name, email string) {
	user = user.clean()
	if t != nil {
		name, email, _ = t.run(user)
	}
	name = cmp.Or(name, user.Name, serviceAccount(user.Username), user.Username)
	address := cmp.Or(serviceAccount(user.Username), user.Username) + "@" + user.Cluster
	if email = cmp.Or(email, user.Email, address); strings.EqualFold(email, managerEmail) {
		email = address
	}
	return shortened(name, maxName), shortened(email, maxEmail)
}

func (t *AuthorTemplate) run(user User) (name, email string, err error) {
	text, err := t.parsed.Execute(user, maxIdentity)
	if err != nil {
		return "", "", err
	}
	text = strings.TrimSpace(text)
	name, rest, opens := strings.Cut(text, "<")
	email, end, closes := strings.Cut(rest, ">")
	if !opens || !closes || end != "" || oneLine(name+email) != strings.TrimSpace(name+email) {
		return "", "", errors.New(`must write one line of the form "Name <email>"`)
	}
	return strings.TrimSpace(name), strings.TrimSpace(email), nil
}

// serviceAccount returns namespace/name for the username of a service account, and an empty string for others.
func serviceAccount(username string) string {
	rest, found := strings.CutPrefix(username, "system:serviceaccount:")
	namespace, name, whole := strings.Cut(rest, ":")
	if !found || !whole {
		return ""
	}
	return namespace + "/" + name
}
