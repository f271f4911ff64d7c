// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package install

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/configbutler/slipstream/test/devcluster/pki"
)

const (
	// pageURL is the address of the page in browsers. Tests connect to its Service instead.
	pageURL = "https://slipstream.example.com"
	// pageAccount is the user name of the page's ServiceAccount.
	pageAccount = "system:serviceaccount:" + namespace + ":slipstream-page"
)

// readers are two users of the page, of which one may read the namespace paged, by name and by group.
const readers = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader, namespace: paged}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: stranger, namespace: paged}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: readers, namespace: paged}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: slipstream-view}
subjects:
- {kind: ServiceAccount, name: reader, namespace: paged}
- {kind: Group, name: paged-readers, apiGroup: rbac.authorization.k8s.io}
`

// testPage installs the page in both modes, and requests it as its proxy does.
func testPage(t *testing.T, s *testCluster) {
	defer s.remove(t)
	s.Apply(t, restrictedNamespace)
	s.pageCertificates(t)
	s.followNotes(t, s.release(t, pageValue(`"tls": {"mode": "generated"}`)))
	s.newMirror(t, "paged")
	s.Apply(t, readers)
	t.Run("Token", func(t *testing.T) { s.pageByToken(t) })
	t.Run("FrontProxy", func(t *testing.T) { s.pageByFrontProxy(t) })
	s.release(t, `page={"enabled": false}`)
	const kinds = "deployments,services,secrets,networkpolicies,serviceaccounts,clusterroles,clusterrolebindings"
	if left := s.Run(t, "get", kinds, "-n", namespace, "-l", "app.kubernetes.io/component=page", "-o", "name"); left != "" {
		t.Errorf("objects left of the page: %s", left)
	}
}

// pageValue returns the value page with fields.
func pageValue(fields ...string) string {
	return `page={` + strings.Join(append([]string{`"enabled": true`, `"url": "` + pageURL + `"`}, fields...), ", ") + `}`
}

// pageCertificates validates the objects for cert-manager with its definitions.
func (s *testCluster) pageCertificates(t *testing.T) {
	t.Helper()
	s.define(t, "cert-manager.io_certificates", "cert-manager.io_issuers")
	made, err := s.validate(t, s.rendered(t, append(setting([]string{pageValue(`"tls": {"mode": "cert-manager"}`)}),
		"--show-only=templates/page/certificates.yaml")...))
	if err != nil || strings.Count(made, "created (server dry run)") != 4 {
		t.Errorf("%v: %s", err, made)
	}
}

// pageByToken requests the page with tokens of users. It has no token and no permission of its own.
func (s *testCluster) pageByToken(t *testing.T) {
	var pods corev1.PodList
	if err := json.Unmarshal([]byte(s.Run(t, "get", "pods", "-n", namespace, "-l", "app.kubernetes.io/component=page", "-o", "json")), &pods); err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		for _, volume := range pod.Spec.Volumes {
			if volume.Projected != nil {
				t.Errorf("%s has the volume %s", pod.Name, volume.Name)
			}
		}
	}
	if diff := cmp.Diff(s.permissions(t, "system:serviceaccount:"+namespace+":default"), s.permissions(t, pageAccount)); diff != "" {
		t.Errorf("permissions of the page (+) differ from those of an account without any (-):\n%s", diff)
	}
	page := s.pageClient(t)
	page.expect(t, "without a token", http.StatusUnauthorized, nil)
	page.expect(t, "with an unknown token", http.StatusUnauthorized, http.Header{"Authorization": {"Bearer unknown"}})
	// Headers with a user mean nothing.
	page.expect(t, "with a name", http.StatusUnauthorized, http.Header{"X-Remote-User": {"admin"}, "X-Remote-Group": {"paged-readers"}})
	page.expect(t, "as a user without permissions", http.StatusForbidden, s.bearer(t, "stranger"))
	page.expect(t, "as a reader", http.StatusOK, s.bearer(t, "reader"))

	const of = "jsonpath={.data.tls\\.crt}"
	before := s.Run(t, "get", "secret/slipstream-page-tls", "-n", namespace, "-o", of)
	s.release(t, pageValue(`"podAnnotations": {"changed": "yes"}`))
	if after := s.Run(t, "get", "secret/slipstream-page-tls", "-n", namespace, "-o", of); after != before || after == "" {
		t.Error("helm upgrade has changed the generated certificate")
	}
}

// pageByFrontProxy requests the page as a proxy with a client certificate that names users. The page may only impersonate them.
func (s *testCluster) pageByFrontProxy(t *testing.T) {
	authority, err := pki.NewAuthority("proxy")
	if err != nil {
		t.Fatal(err)
	}
	s.Apply(t, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: proxy, namespace: %s}, data: {ca.crt: %q}}", namespace, authority.Certificate))
	s.release(t, pageValue(`"authentication": "FrontProxy"`,
		`"frontProxy": {"clientCA": {"configMap": "proxy"}, "allowedNames": ["proxy"], "groups": ["paged-readers"],
			"uidHeaders": ["X-Remote-Uid"], "extraHeaderPrefixes": ["X-Remote-Extra-"]}`))
	s.pageImpersonates(t)

	user := func(name string, groups ...string) http.Header {
		return http.Header{
			"X-Remote-User": {name}, "X-Remote-Group": groups, "X-Remote-Uid": {"42"}, "X-Remote-Extra-Department": {"sales"},
		}
	}
	page := s.pageClient(t)
	page.expect(t, "without a certificate", http.StatusForbidden, user("jane", "paged-readers"))
	page.present(t, authority, "another")
	page.expect(t, "with a certificate of another name", http.StatusForbidden, user("jane", "paged-readers"))
	other, err := pki.NewAuthority("proxy")
	if err != nil {
		t.Fatal(err)
	}
	page.present(t, other, "proxy")
	page.expect(t, "with a certificate of another authority", http.StatusForbidden, user("jane", "paged-readers"))
	page.present(t, authority, "proxy")
	page.expect(t, "without a user", http.StatusUnauthorized, nil)
	page.expect(t, "as a reader", http.StatusOK, user("jane", "paged-readers", "system:authenticated"))
	page.expect(t, "as a reader whom Kubernetes knows by another group, too", http.StatusOK, user("jane", "paged-readers", "others"))
	page.expect(t, "as a user without permissions", http.StatusForbidden, user("jane", "others"))
	page.expect(t, "as a user of Kubernetes", http.StatusForbidden, user("system:kube-controller-manager", "paged-readers"))
	// It is left out, since it is not among the groups.
	page.expect(t, "as an administrator", http.StatusForbidden, user("jane", "system:masters"))
}

// pageImpersonates checks the permissions of the page with FrontProxy.
func (s *testCluster) pageImpersonates(t *testing.T) {
	t.Helper()
	none := s.permissions(t, "system:serviceaccount:"+namespace+":default")
	own := slices.DeleteFunc(s.permissions(t, pageAccount), func(line string) bool { return slices.Contains(none, line) })
	want := []string{"*.authentication.k8s.io [] [] [impersonate]", "groups [] [paged-readers] [impersonate]", "users [] [] [impersonate]"}
	if diff := cmp.Diff(want, own); diff != "" {
		t.Error(diff)
	}
	for resource, allowed := range map[string]bool{
		"users/jane": true, "groups/paged-readers": true, "groups/system:masters": false, "groups/others": false, "serviceaccounts/slipstream": false,
	} {
		answer, err := s.Administrator.Run(t.Context(), "auth", "can-i", "impersonate", resource, "-n", namespace, "--as="+pageAccount)
		if (strings.TrimSpace(answer) == "yes") != allowed {
			t.Errorf("the page may impersonate %s: %q (%v), want %v", resource, answer, err, allowed)
		}
	}
}

// permissions returns the rules of a user in the server's namespace, as lines.
func (s *testCluster) permissions(t *testing.T, user string) (lines []string) {
	t.Helper()
	for line := range strings.Lines(s.Run(t, "auth", "can-i", "--list", "--no-headers", "-n", namespace, "--as="+user)) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	slices.Sort(lines)
	return lines
}

// bearer returns the headers with the token of a ServiceAccount.
func (s *testCluster) bearer(t *testing.T, account string) http.Header {
	t.Helper()
	return http.Header{"Authorization": {"Bearer " + strings.TrimSpace(s.Run(t, "create", "token", account, "-n", "paged"))}}
}

// present makes the client show a certificate with a name.
func (p *pageClient) present(t *testing.T, by *pki.Authority, name string) {
	t.Helper()
	pair, err := by.Client(name)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	p.settings.Certificates = []tls.Certificate{certificate}
}
