// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"strings"
	"testing"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/githosttest"
)

// TestDeathWhileProposing kills the process at every call to the host, the store and the remote, and starts another.
func TestDeathWhileProposing(t *testing.T) {
	for _, moment := range []string{
		"before call", "after call", "before writing call", "after writing call",
		"before put proposals", "after put proposals", "before push", "after push",
	} {
		for n := 1; n <= 4; n++ {
			t.Run(fmt.Sprintf("%s/%d", moment, n), func(t *testing.T) {
				p := newProposing(t, githosttest.GitHub)
				p.idle()
				died := p.process.killAt(moment, n)
				p.cluster.put(configMap("a"), "1")
				restarted := false
				restart := func() {
					select {
					case <-died:
						if !restarted {
							restarted = true
							p.stop()
							p.start()
						}
					default:
					}
				}
				p.untilProposed(restart, 1, "a")
				p.merge(1, "--squash", "origin/"+head)
				p.cluster.put(configMap("b"), "1")
				p.untilProposed(restart, 2, "b")
				p.api.CloseBy(2, "bob")
				p.untilDeclined(restart, 2)
				p.cluster.put(configMap("c"), "1")
				p.untilProposed(restart, 3, "c")
				if count := len(p.api.PullRequests()); count != 3 || n == 1 && !restarted {
					t.Errorf("%d pull requests, want 3; died: %v", count, restarted)
				}
				if body := p.api.PullRequests()[2].Body; strings.Contains(body, "shop/b`") {
					t.Errorf("what was declined is proposed again: %s", body)
				}
			})
		}
	}
}

// untilProposed waits until an open pull request names an object, and restarts the process when it has died.
func (p *proposing) untilProposed(restart func(), number int, object string) {
	p.t.Helper()
	testkit.Eventually(p.t, fmt.Sprintf("%s in pull request %d", object, number), func() error {
		restart()
		all := p.api.PullRequests()
		if len(all) < number || all[number-1].State != githosttest.Open || !strings.Contains(all[number-1].Body, "shop/"+object+"`") {
			return fmt.Errorf("%+v", all)
		}
		if open := p.record("main").Proposal; open == nil || open.Number != int64(number) || open.State != v1alpha1.ProposalOpen {
			return fmt.Errorf("status %+v", open)
		}
		return nil
	})
	p.atMostOneOpen()
}

func (p *proposing) untilDeclined(restart func(), number int64) {
	p.t.Helper()
	testkit.Eventually(p.t, fmt.Sprintf("pull request %d is declined", number), func() error {
		restart()
		if newest := p.record("main").Proposal; newest == nil || newest.Number != number || newest.State != v1alpha1.ProposalDeclined {
			return fmt.Errorf("status %+v", newest)
		}
		return nil
	})
}
