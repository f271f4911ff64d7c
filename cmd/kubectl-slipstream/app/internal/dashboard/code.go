// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"encoding/base64"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// codeLife is how long a link can be opened.
	codeLife = time.Minute
	// maxCodes is the number of links that can be opened, the newest ones.
	maxCodes = 8
	// maxTabs is the number of sessions of the command.
	maxTabs = 64
)

const newLinkHint = "Press Enter in the terminal of kubectl slipstream dashboard for a new link"

// code is one that can be exchanged for a session once.
type code struct {
	digest
	until time.Time
}

// links are the codes of links, which open sessions of one workspace.
type links struct {
	// origin is the address of the page, without a slash at the end.
	origin    string
	workspace *workspace
	now       func() time.Time

	mu    sync.Mutex
	codes []code
}

// newCode returns a code for a link.
func (l *links) newCode() string {
	secret := base64.RawURLEncoding.EncodeToString(randomBytes())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.codes = append(l.codes, code{digestOf(secret), l.now().Add(codeLife)})
	l.codes = l.codes[max(0, len(l.codes)-maxCodes):]
	return secret
}

// open implements logins. The code is used up, also if it is late.
func (l *links) open(_ *http.Request, request *sessionRequest) (*login, error) {
	wanted := digestOf(request.Code)
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.IndexFunc(l.codes, func(c code) bool { return c.is(wanted) })
	switch {
	case request.Code == "":
		return nil, noLogin("This tab has no session", newLinkHint)
	case at < 0:
		return nil, noLogin("This link was used already, or is not one of this command", newLinkHint)
	}
	until := l.codes[at].until
	l.codes = slices.Delete(l.codes, at, at+1)
	if l.now().After(until) {
		return nil, noLogin("This link is older than a minute", newLinkHint)
	}
	return &login{workspace: l.workspace}, nil
}

// check implements logins: who has a session has opened a link.
func (l *links) check(*http.Request, *session) error { return nil }

// ended implements logins.
func (l *links) ended() error { return noLogin("The login of this page has ended", newLinkHint) }
