// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/githosttest"
)

// unlimited is a transport whose requests end with the process, and not before.
type unlimited struct {
	*fixture
	http.RoundTripper
}

// RoundTrip makes the request.
func (u unlimited) RoundTrip(request *http.Request) (*http.Response, error) {
	return u.RoundTripper.RoundTrip(request.WithContext(u.ctx))
}

// TestOthersArePushedWhileTheHostHangs has the host of a pull request accept a request and never respond. The only slot is not held
// meanwhile, so that another destination is pushed.
func TestOthersArePushedWhileTheHostHangs(t *testing.T) {
	for _, call := range []string{"check", "publish"} {
		t.Run(call, func(t *testing.T) {
			p := newProposing(t, githosttest.Gitea, onBranch("plain", "plain", "plain"), func(s *fixture) {
				s.in.repositories[0].Spec.AllowedBranches = []string{"*", "slipstream/*/*"}
				s.limits.Workers, s.hostUnlimited = 1, true
			})
			if call == "check" {
				p.cluster.put(configMap("first"), "1")
				p.proposed(1, 1)
			}
			hangs := p.api.Hang()
			if call == "publish" {
				p.cluster.put(configMap("first"), "1")
			}
			<-hangs
			p.cluster.put(configMap("second"), "1")
			p.holds("plain", "plain", inShop)
			p.waitReady("plain", v1alpha1.ReasonSucceeded)
			p.api.Up()
			p.proposed(1, 2)
		})
	}
}

// TestHostHangs checks that a request to the host ends, that the condition says why, and that the pull request follows once the host
// responds again. The branch has all changes meanwhile.
func TestHostHangs(t *testing.T) {
	p := newProposing(t, githosttest.GitHub, func(s *fixture) { s.hostPatience = 5 * time.Second })
	p.cluster.put(configMap("a"), "1")
	p.proposed(1, 1)
	p.api.Hang()
	failed := p.waitReady("main", v1alpha1.ReasonProposalFailed)
	if !strings.Contains(failed.Message, "has not answered within") {
		t.Errorf("message %q", failed.Message)
	}
	p.cluster.put(configMap("b"), "1")
	p.holds(head, "clusters/a", inShop)
	p.api.Up()
	p.proposed(1, 2)
	p.waitReady("main", v1alpha1.ReasonSucceeded)
}

// TestBranchIsDeletedWhileTheHostLimitsRequests deletes the branch of an open pull request while the host limits requests. The host gets
// no request before the time that it names, although the branch waits for it.
func TestBranchIsDeletedWhileTheHostLimitsRequests(t *testing.T) {
	p := newProposing(t, githosttest.GitHub)
	p.cluster.put(configMap("a"), "1")
	p.proposed(1, 1)
	p.api.RateLimit(time.Hour)
	p.waitReady("main", v1alpha1.ReasonProposalFailed)
	calls := len(p.api.Calls())
	var reads atomic.Int64
	p.git.guard(func(http.ResponseWriter, *http.Request) bool {
		reads.Add(1)
		return true
	})
	p.mustRun("update-ref", "-d", "refs/heads/"+head)
	testkit.Eventually(t, "the condition", func() error {
		if message := p.ready("main").Message; !strings.Contains(message, "cannot be read") || !strings.Contains(message, "limits requests") {
			return errors.New(message)
		}
		return nil
	})
	began := reads.Load()
	testkit.EventuallyTrue(t, "further attempts", func() bool { return reads.Load() >= began+10 })
	if got := len(p.api.Calls()); got != calls {
		t.Errorf("%d requests to the host", got-calls)
	}
	p.api.Up()
	p.stop() // Another process does not know the limit.
	p.start()
	p.proposed(1, 1)
}
