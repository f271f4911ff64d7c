// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// These words identify patches that may make an object refer to others. Every field of Kubernetes that refers to Secrets, or to an account,
// which has Secrets of its own, contains one of the first list in its name or is inside of a field that does: secretRef, secretKeyRef,
// imagePullSecrets, nodePublishSecretRef, serviceAccountName. Fields that refer to ConfigMaps are configMap, configMapRef and
// configMapKeyRef. Gateways refer to both with certificateRefs, clientCertificateRef, caCertificateRefs and parametersRef.
var (
	wordsOfSecrets    = []string{"secret", "serviceaccount", "certificateref", "parametersref"}
	wordsOfConfigMaps = []string{"configmap", "certificateref", "parametersref"}
)

// PatchesNameObjects reports whether an environment's patches may make a workload refer to objects that need a permission to be read.
func PatchesNameObjects(e *v1alpha1.Environment) bool {
	return mayRefer(e.Spec.Patches, wordsOfSecrets) || mayRefer(e.Spec.Patches, wordsOfConfigMaps)
}

// mayRefer reports whether patches may make a workload refer to the objects that words identify. Other fields whose names contain one of
// the words count, too. So do patches that cannot be decoded, which validation rejects.
func mayRefer(patches []v1alpha1.Patch, words []string) bool {
	return slices.ContainsFunc(patches, func(p v1alpha1.Patch) bool {
		var content any
		return yaml.Unmarshal([]byte(p.Patch), &content) != nil || nameIn(content, words)
	})
}

// nameIn reports whether the name of a field, or the path of an operation of a JSON patch, contains one of the words.
func nameIn(content any, words []string) bool {
	switch c := content.(type) {
	case map[string]any:
		for field, value := range c {
			path, isText := value.(string)
			if isAbout(field, words) || field == "path" && isText && isAbout(path, words) || nameIn(value, words) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(c, func(item any) bool { return nameIn(item, words) })
	}
	return false
}

func isAbout(text string, words []string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}
