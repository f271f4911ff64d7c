// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const fluxManifests = `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata:
  name: teams-main
  namespace: flux-system
spec:
  interval: 1m
  ref:
    branch: live
  secretRef:
    name: teams-main-git
  url: ssh://git@git.example.com/shop.git
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: teams-main
  namespace: flux-system
spec:
  decryption:
    provider: sops
    secretRef:
      name: teams-main-age
  interval: 10m
  path: ./clusters/a
  prune: true
  sourceRef:
    kind: GitRepository
    name: teams-main
`

const argoManifest = `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: shop
  namespace: argocd
spec:
  destination:
    server: https://kubernetes.default.svc
  project: default
  source:
    directory:
      recurse: true
    path: .
    repoURL: https://git.example.com/shop.git
    targetRevision: live
  syncPolicy:
    automated:
      prune: true
      selfHeal: true
    syncOptions:
    - ServerSideApply=true
`

// TestBootstrap prints what follows a destination. test/fidelity has the definitions of Flux and Argo CD check it.
func TestBootstrap(t *testing.T) {
	private := serveMirror(t, "git@git.example.com:shop.git", "clusters/a", v1alpha1.SecretsEncrypt, &v1alpha1.SecretReference{Name: "git"})
	public := serveMirror(t, "https://git.example.com/shop.git", "", v1alpha1.SecretsOmit, nil)
	for name, test := range map[string]struct {
		server *requestServer
		args   string
		code   int
		out    string
		notes  []string
	}{
		"flux": {
			server: private, args: "flux --destination main", out: fluxManifests,
			notes: []string{
				"Who can push to the branch live of git@git.example.com:shop.git can then create any object in that cluster",
				"check that ssh://git@git.example.com/shop.git is the same repository",
				"Create the Secret teams-main-git in flux-system", "Create the Secret teams-main-age in flux-system",
			},
		},
		"argocd, without Secrets and credentials": {
			server: public, args: "argocd --destination teams/main --name shop", out: argoManifest, notes: []string{"restrict it with an AppProject\n"},
		},
		"Flux's own name": {server: public, args: "flux --destination main --name flux-system", code: 2, notes: []string{"--name: "}},
		"a long name": {
			server: public, args: "flux --destination main --name " + strings.Repeat("a", 64), code: 2, notes: []string{"longer than 63 characters"},
		},
		"no destination":                    {server: public, args: "flux", code: 2, notes: []string{"--destination is missing"}},
		"another tool":                      {server: public, args: "fleet --destination main", code: 2, notes: []string{`invalid argument "fleet"`}},
		"a wrong name":                      {server: public, args: "flux --destination a/b/c", code: 2, notes: []string{"write [NAMESPACE/]NAME"}},
		"a destination that does not exist": {server: public, args: "flux --destination mian", code: 2, notes: []string{`Did you mean "main"`}},
	} {
		t.Run(name, func(t *testing.T) {
			out, notes, code, err := test.server.in(t, append([]string{"bootstrap"}, strings.Fields(test.args)...)...)
			if err != nil {
				notes += err.Error()
			}
			if diff := cmp.Diff(test.out, out); code != test.code || diff != "" {
				t.Errorf("exit code %d, %v (-want +got):\n%s", code, err, diff)
			}
			for _, want := range test.notes {
				if !strings.Contains(notes, want) {
					t.Errorf("no %q in %s", want, notes)
				}
			}
		})
	}
}

// serveMirror has the destination main, of the repository shop, in the namespace teams.
func serveMirror(t *testing.T, url, folder string, secrets v1alpha1.SecretsPolicy, credentials *v1alpha1.SecretReference) *requestServer {
	t.Helper()
	return serveRequests(t, map[string][]any{
		ofTeams + "gitdestinations/main": {&v1alpha1.GitDestination{
			TypeMeta: typeMeta("GitDestination"), ObjectMeta: objectMeta("main", nil), Spec: v1alpha1.GitDestinationSpec{
				RepoRef: v1alpha1.ObjectReference{Name: "shop"}, Branch: "live", BaseFolder: folder, Secrets: secrets,
			},
		}},
		ofTeams + "gitrepoconfigs/shop": {&v1alpha1.GitRepoConfig{
			TypeMeta: typeMeta("GitRepoConfig"), ObjectMeta: objectMeta("shop", nil),
			Spec: v1alpha1.GitRepoConfigSpec{RepoURL: url, AllowedBranches: []string{"live"}, SecretRef: credentials},
		}},
	}, nil)
}
