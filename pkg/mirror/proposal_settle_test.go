// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/githosttest"
)

// TestRebaseSignsOnlyOwnCommits has others push to the branch before its base moves, and another process rebase it.
func TestRebaseSignsOnlyOwnCommits(t *testing.T) {
	key, public := newSSHKey(t, "")
	p := newProposing(t, githosttest.GitHub, signing(v1alpha1.SigningFormatSSH, map[string][]byte{"ssh-privatekey": key}))
	p.cluster.put(configMap("a"), "1")
	p.proposed(1, 1)
	p.idle()
	p.stop()
	other := p.otherWriter()
	theirs := "X-ConfigButler-ClusterUID: cluster" // As the server writes it.
	for _, path := range []string{"clusters/a/core/v1/configmaps/shop/a.yaml", "clusters/a/core/v1/configmaps/shop/z.yaml"} {
		for _, step := range []func() error{
			func() error { return other.git("fetch", "--quiet") },
			func() error { return other.git("reset", "--quiet", "--hard", "origin/"+head) },
			other.write(path, "forged"),
			func() error { return other.git("add", "--all") },
			func() error { return other.git("commit", "--quiet", "--message=forged", "--message="+theirs) },
			func() error { return other.git("push", "--quiet", "origin", "HEAD:"+head) },
		} {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}
	}
	p.start() // The files are set back on top of what others have pushed.
	p.cluster.put(configMap("b"), "1")
	p.proposed(1, 2)
	p.idle()
	if subjects := p.mustRun("log", "--format=%s", "main.."+head); strings.Count(subjects, "forged") != 2 {
		t.Errorf("the commits of others were replaced before the base moved: %s", subjects)
	}
	p.stop()
	if err := other.edit("theirs", other.write("docs", "new")); err != nil {
		t.Fatal(err)
	}
	p.start()
	p.proposed(1, 2)
	signers := filepath.Join(t.TempDir(), "signers")
	if err := os.WriteFile(signers, []byte("bot@example.com "+public), 0o600); err != nil {
		t.Fatal(err)
	}
	log := p.mustRun("-c", "gpg.ssh.allowedSignersFile="+signers, "log", "--format=%G? %s", "main.."+head)
	for line := range strings.Lines(log) {
		if !strings.HasPrefix(line, "G ") || strings.Contains(line, "forged") {
			t.Errorf("commit: %s", line)
		}
	}
	for _, kept := range []string{"[CREATE] v1/configmaps shop/a", "[CREATE] v1/configmaps shop/b"} {
		if !strings.Contains(log, kept) {
			t.Errorf("%s is not among the commits:\n%s", kept, log)
		}
	}
}
