// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app"
)

// page is the name of the objects of the page.
const page = "slipstream-page"

// podOfPage returns the Pod of the page.
func podOfPage(t *testing.T, all []runtime.Object) corev1.PodTemplateSpec {
	t.Helper()
	return find[*appsv1.Deployment](t, all, page).Spec.Template
}

// ofPage returns the kinds of the objects whose names begin with that of the page.
func ofPage(t *testing.T, all []runtime.Object) (kinds []string) {
	t.Helper()
	for _, each := range all {
		object, err := meta.Accessor(each)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(object.GetName(), page) {
			kinds = append(kinds, each.GetObjectKind().GroupVersionKind().Kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

func TestObjectsOfThePage(t *testing.T) {
	always := []string{"Deployment", "NetworkPolicy", "Service", "ServiceAccount"}
	for name, test := range map[string]struct {
		values string
		want   []string
	}{
		"disabled":        {"{}", nil},
		"Token":           {shown, always},
		"FrontProxy":      {proxied, append([]string{"ClusterRole", "ClusterRoleBinding"}, always...)},
		"without roles":   {strings.Replace(proxied, "{page", "{rbac: {create: false}, page", 1), always},
		"several":         {strings.Replace(shown, "enabled: true", "enabled: true, replicas: 2", 1), append([]string{"PodDisruptionBudget"}, always...)},
		"without network": {strings.Replace(shown, "{page", "{networkPolicy: {enabled: false}, page", 1), []string{"Deployment", "Service", "ServiceAccount"}},
		"cert-manager":    {issued, append([]string{"Certificate", "Certificate", "Issuer", "Issuer"}, always...)},
	} {
		t.Run(name, func(t *testing.T) {
			slices.Sort(test.want)
			if diff := cmp.Diff(test.want, ofPage(t, objects(t, test.values))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The Pod of the page has the security contexts of the server's, and can write nothing. With Token, it has no token.
func TestPodOfThePageIsRestricted(t *testing.T) {
	for values, volumes := range map[string][]string{
		shown:   {"Secret slipstream-page-tls tls.crt,tls.key", "ConfigMap kube-root-ca.crt ca.crt"},
		proxied: {"Secret slipstream-page-tls tls.crt,tls.key", "ConfigMap proxy ca.crt"},
		strings.Replace(proxied, "configMap", "secret", 1): {"Secret slipstream-page-tls tls.crt,tls.key", "Secret proxy ca.crt"},
	} {
		all := objects(t, values)
		pod, server := podOfPage(t, all).Spec, find[*appsv1.Deployment](t, all, "slipstream").Spec.Template.Spec
		if diff := cmp.Diff(server.SecurityContext, pod.SecurityContext); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(server.Containers[0].SecurityContext, pod.Containers[0].SecurityContext); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(volumes, volumesOf(pod)); diff != "" {
			t.Errorf("%s: %s", values, diff)
		}
		for _, mount := range pod.Containers[0].VolumeMounts {
			if !mount.ReadOnly {
				t.Errorf("%s: %s is writable", values, mount.Name)
			}
		}
		if got := *pod.AutomountServiceAccountToken; got != strings.Contains(values, "FrontProxy") || pod.ServiceAccountName != page {
			t.Errorf("%s: the token of %s is mounted: %v", values, pod.ServiceAccountName, got)
		}
		if account := find[*corev1.ServiceAccount](t, all, page); *account.AutomountServiceAccountToken {
			t.Errorf("%s: the token is mounted in every Pod of the account", values)
		}
	}
}

// The plugin accepts the arguments of the page.
func TestPageAcceptsItsArguments(t *testing.T) {
	for _, values := range []string{
		shown, strings.Replace(proxied, "frontProxy: {", "frontProxy: {allowedNames: [one, two], uidHeaders: [], ", 1),
	} {
		arguments := podOfPage(t, objects(t, values)).Spec.Containers[0].Args
		command, rest, err := app.NewCommand(genericiooptions.NewTestIOStreamsDiscard()).Find(arguments)
		if err != nil || command.CommandPath() != "kubectl slipstream dashboard serve" {
			t.Fatalf("%v run the command %s (%v)", arguments, command.CommandPath(), err)
		}
		if err := command.ParseFlags(rest); err != nil || command.Flags().NArg() > 0 {
			t.Errorf("%v: %v, arguments %v", rest, err, command.Flags().Args())
		}
	}
}

// volumesOf returns the volumes of a Pod as lines: kind, name, keys. Volumes of other kinds have no name.
func volumesOf(pod corev1.PodSpec) (lines []string) {
	for _, volume := range pod.Volumes {
		line := ""
		var items []corev1.KeyToPath
		switch {
		case volume.Secret != nil && *volume.Secret.DefaultMode == 0o440:
			line, items = "Secret "+volume.Secret.SecretName, volume.Secret.Items
		case volume.ConfigMap != nil:
			line, items = "ConfigMap "+volume.ConfigMap.Name, volume.ConfigMap.Items
		}
		var keys []string
		for _, item := range items {
			keys = append(keys, item.Key)
		}
		lines = append(lines, line+" "+strings.Join(keys, ","))
	}
	return lines
}

// The page has no permission with Token, and with FrontProxy only those to impersonate users, the given groups, and
// what else the headers name.
func TestPermissionsOfThePage(t *testing.T) {
	with := func(fields string) string {
		return strings.Replace(proxied, "groups: [team]", fields, 1)
	}
	for values, want := range map[string][]string{
		with("groups: [team, ops]"):                               {"impersonate groups ops,team", "impersonate users"},
		with(`groups: ["*"]`):                                     {"impersonate groups", "impersonate users"},
		with("groupHeaders: []"):                                  {"impersonate users"},
		with("groupHeaders: [], uidHeaders: [X-Uid]"):             {"impersonate uids.authentication.k8s.io", "impersonate users"},
		with("groupHeaders: [], extraHeaderPrefixes: [X-Extra-]"): {"impersonate *.authentication.k8s.io", "impersonate users"},
	} {
		all := objects(t, values)
		if diff := cmp.Diff(want, rules(find[*rbacv1.ClusterRole](t, all, page).Rules, nil)); diff != "" {
			t.Error(diff)
		}
		wantBound := page + " in * to ServiceAccount " + namespace + " " + page
		if got := bindingsOfPage(all); !slices.Equal(got, []string{wantBound}) {
			t.Errorf("bindings = %v, want %s", got, wantBound)
		}
	}
	if got := bindingsOfPage(objects(t, shown)); len(got) > 0 {
		t.Errorf("bindings with Token = %v", got)
	}
}

// The page impersonates only groups that it has the permission for.
func TestGroupsOfThePage(t *testing.T) {
	const flag = "--impersonated-groups="
	for groups, want := range map[string]string{
		"groups: [team, on-call]": flag + "team,on-call", `groups: ["*"]`: "", "groupHeaders: []": "",
	} {
		arguments := podOfPage(t, objects(t, strings.Replace(proxied, "groups: [team]", groups, 1))).Spec.Containers[0].Args
		got := slices.DeleteFunc(arguments, func(argument string) bool { return !strings.HasPrefix(argument, flag) })
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %q", groups, got, want)
		}
	}
}

// bindingsOfPage returns the bindings to the ServiceAccount of the page, and those of its role.
func bindingsOfPage(all []runtime.Object) []string {
	return slices.DeleteFunc(bound(all), func(line string) bool { return !strings.Contains(line, page) })
}

// The policy allows only connections to the page's port, and only those of the page to DNS and the ports of kube-apiserver.
func TestConnectionsOfThePage(t *testing.T) {
	values := strings.Replace(shown, "{page: {", `{networkPolicy: {egress: {apiServer: {to: [{ipBlock: {cidr: 10.0.0.0/28}}], ports: [8443]}}}, `+
		`page: {networkPolicy: {from: [{namespaceSelector: {matchLabels: {proxy: "yes"}}}]}, `, 1)
	all := objects(t, values)
	pod := podOfPage(t, all)
	policy := find[*networkingv1.NetworkPolicy](t, all, page).Spec
	want := networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": "slipstream", "app.kubernetes.io/component": "page"}},
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		Ingress: []networkingv1.NetworkPolicyIngressRule{{
			Ports: ports(corev1.ProtocolTCP, intstr.FromString("https")),
			From:  []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"proxy": "yes"}}}},
		}},
		Egress: []networkingv1.NetworkPolicyEgressRule{
			{Ports: append(ports(corev1.ProtocolUDP, intstr.FromInt32(53)), ports(corev1.ProtocolTCP, intstr.FromInt32(53))...)},
			{Ports: ports(corev1.ProtocolTCP, intstr.FromInt32(8443)), To: block("10.0.0.0/28")},
		},
	}
	if diff := cmp.Diff(want, policy); diff != "" {
		t.Error(diff)
	}
	// The addresses of kube-apiserver are not known by default.
	byDefault := find[*networkingv1.NetworkPolicy](t, objects(t, shown), page).Spec.Egress
	want.Egress[1] = networkingv1.NetworkPolicyEgressRule{Ports: ports(corev1.ProtocolTCP, intstr.FromInt32(443), intstr.FromInt32(6443))}
	if diff := cmp.Diff(want.Egress, byDefault); diff != "" {
		t.Errorf("by default: %s", diff)
	}
	service := find[*corev1.Service](t, all, page).Spec
	if target := portNumber(service.Ports[0].TargetPort, pod); target != 8443 || service.Ports[0].Port != 443 {
		t.Errorf("port %d of the Service leads to %d", service.Ports[0].Port, target)
	}
	if service.SessionAffinity != corev1.ServiceAffinityClientIP {
		t.Errorf("session affinity = %s", service.SessionAffinity)
	}
}

// The selectors of the page select its Pods, not those of the server, and the reverse.
func TestSelectorsOfThePage(t *testing.T) {
	all := objects(t, `{storage: {backend: etcd3, etcd: {servers: ["https://etcd:2379"]}}, replicas: 3, metrics: {serviceMonitor: {enabled: true}}, `+
		`page: {enabled: true, url: "https://page.example", replicas: 2, tls: {mode: secret}}}`)
	pods := map[string]labels.Set{"slipstream": find[*appsv1.Deployment](t, all, "slipstream").Spec.Template.Labels, page: podOfPage(t, all).Labels}
	for name := range pods {
		deployment := find[*appsv1.Deployment](t, all, name).Spec
		selectors := []labels.Selector{
			labels.SelectorFromSet(find[*corev1.Service](t, all, name).Spec.Selector), selector(t, deployment.Selector),
			selector(t, find[*policyv1.PodDisruptionBudget](t, all, name).Spec.Selector),
			selector(t, &find[*networkingv1.NetworkPolicy](t, all, name).Spec.PodSelector),
		}
		for _, spread := range deployment.Template.Spec.TopologySpreadConstraints {
			selectors = append(selectors, selector(t, spread.LabelSelector))
		}
		if len(selectors) != 6 {
			t.Fatalf("%s has %d selectors, want 6", name, len(selectors))
		}
		for other, set := range pods {
			for _, each := range selectors {
				if each.Matches(set) != (other == name) {
					t.Errorf("selector %v of %s selects Pods of %s: %v", each, name, other, other != name)
				}
			}
		}
	}
	// Prometheus scrapes the Services that the monitor selects. The page has no metrics.
	monitored := &metav1.LabelSelector{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(
		other(t, all, "ServiceMonitor", "slipstream")["selector"].(map[string]any), monitored); err != nil {
		t.Fatal(err)
	}
	for name := range pods {
		service := find[*corev1.Service](t, all, name)
		if got := selector(t, monitored).Matches(labels.Set(service.Labels)); got != (name == "slipstream") {
			t.Errorf("Service %s is monitored: %v", name, got)
		}
	}
}
