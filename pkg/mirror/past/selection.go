// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package past

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/manifest"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

const (
	// defaultLimit and maxLimit bound the objects of a response.
	defaultLimit = 500
	maxLimit     = 5000
	// longestSelector bounds the label selector, in bytes.
	longestSelector = 4 << 10
	// anyVersion is a valid version for paths whose version does not matter.
	anyVersion = "v1"
)

// secrets are the objects whose values are masked.
var secrets = schema.GroupResource{Resource: "secrets"}

// selection is which objects a request selects.
type selection struct {
	at moment
	// resource is zero for all types.
	resource        schema.GroupResource
	namespace, name string
	labels          labels.Selector
	limit           int
	decrypted       bool
	// page is where an earlier response ended.
	page page
}

// page is the token of the next page. It contains nothing about files in between that the caller may not know, and guesses about them make no
// difference.
type page struct {
	// Commit is the commit that the pages are of.
	Commit string `json:"commit,omitempty"`
	// After is the path of the last file of the earlier pages whose type the caller may read, below the base folder.
	After string `json:"after,omitempty"`
}

// token returns the text of a page.
func (p page) token() (string, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return "", fmt.Errorf("write the token of the next page: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(text), nil
}

// parsePage parses a token.
func parsePage(token string) (page, error) {
	var p page
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if _, managed := manifest.ManagedPath(p.After); err != nil || !managed || gitrepo.ParseHash(p.Commit).String() != p.Commit {
		return p, apierrors.NewBadRequest("continue: not a token of an earlier response")
	}
	return p, nil
}

// parseSelection validates the options of a request.
func parseSelection(options *v1alpha1.ManifestOptions, now time.Time) (selection, error) {
	s := selection{namespace: options.Namespace, name: options.Name, limit: defaultLimit}
	var err error
	if s.at, err = parseMoment(options.At, now); err != nil {
		return s, err
	}
	if err := s.parseObjects(options); err != nil {
		return s, err
	}
	switch limit := options.Limit; {
	case limit < 0 || limit > maxLimit:
		return s, apierrors.NewBadRequest(fmt.Sprintf("limit: must be between 0 and %d; 0 means %d", maxLimit, defaultLimit))
	case limit > 0:
		s.limit = int(limit)
	}
	switch options.Secrets {
	case "", v1alpha1.SecretsMasked:
	case v1alpha1.SecretsDecrypted:
		s.decrypted = true
	default:
		return s, apierrors.NewBadRequest(fmt.Sprintf("secrets: must be %s or %s", v1alpha1.SecretsMasked, v1alpha1.SecretsDecrypted))
	}
	if options.Continue == "" {
		return s, nil
	}
	s.page, err = parsePage(options.Continue)
	return s, err
}

// parseObjects validates the fields that select objects.
func (s *selection) parseObjects(options *v1alpha1.ManifestOptions) error {
	if options.Resource != "" {
		s.resource = schema.ParseGroupResource(options.Resource)
		folder := manifest.Folder{Group: s.resource.Group, Version: anyVersion, Resource: s.resource.Resource}
		if _, err := folder.Path(); err != nil {
			return apierrors.NewBadRequest("resource: must be the plural of a type, with the group unless it is empty, such as deployments.apps")
		}
	}
	if options.Namespace != "" {
		folder := manifest.Folder{Version: anyVersion, Resource: secrets.Resource, Namespace: options.Namespace}
		if _, err := folder.Path(); err != nil {
			return apierrors.NewBadRequest("namespace: must be the name of a namespace")
		}
	}
	if options.Name != "" {
		if options.Resource == "" {
			return apierrors.NewBadRequest("name: needs resource")
		}
		if _, err := s.fileName(); err != nil {
			return apierrors.NewBadRequest("name: must be the name of an object")
		}
	}
	if len(options.LabelSelector) > longestSelector {
		return apierrors.NewBadRequest(fmt.Sprintf("labelSelector: longer than %d bytes", longestSelector))
	}
	selector, err := labels.Parse(options.LabelSelector)
	if err != nil {
		return apierrors.NewBadRequest("labelSelector: " + err.Error())
	}
	s.labels = selector
	return nil
}

// fileName returns the name of the file of an object with the selected name.
func (s *selection) fileName() (string, error) {
	file, err := manifest.Location{Version: anyVersion, Resource: secrets.Resource, Name: s.name}.Path()
	return path.Base(file), err
}

// groupFolder returns the folder below the base folder that has all selected objects.
func (s *selection) groupFolder() string {
	if s.resource.Resource == "" {
		return ""
	}
	folder, err := manifest.Folder{Group: s.resource.Group, Version: anyVersion, Resource: s.resource.Resource}.Path()
	if err != nil {
		return "" // parseObjects has checked it.
	}
	group, _, _ := strings.Cut(folder, "/")
	return group
}

// selects reports whether a file may be that of a selected object, by its path. file is the name that fileName returns.
func (s *selection) selects(of manifest.Folder, base, file string) bool {
	return (s.resource.Resource == "" || of.GroupVersionResource().GroupResource() == s.resource) &&
		(s.namespace == "" || of.Namespace == s.namespace) && (s.name == "" || base == file)
}

// mayRead reports whether the caller may read the selected objects of a folder.
func (s *selection) mayRead(ctx context.Context, reader *access.Reader, of manifest.Folder) (bool, error) {
	resource := of.GroupVersionResource().GroupResource()
	if s.name != "" {
		return reader.May(ctx, "get", resource, of.Namespace, s.name)
	}
	return reader.MayList(ctx, resource, of.Namespace)
}

// check returns Forbidden if the caller may not read what is selected whether or not it existed, so that no caller learns from an empty
// response what existed.
func (s *selection) check(ctx context.Context, reader *access.Reader) error {
	if s.resource.Resource == "" || s.namespace == "" {
		return nil
	}
	of := manifest.Folder{Group: s.resource.Group, Version: anyVersion, Resource: s.resource.Resource, Namespace: s.namespace}
	allowed, err := s.mayRead(ctx, reader, of)
	switch {
	case err != nil:
		return apierrors.NewInternalError(err)
	case allowed:
		return nil
	}
	verb := "list"
	if s.name != "" {
		verb = "get"
	}
	return apierrors.NewForbidden(s.resource, s.name, access.Refusal(reader.User(), []access.Permission{{
		Verbs: []string{verb}, Namespace: s.namespace, Group: s.resource.Group, Resources: []string{s.resource.Resource}, Name: s.name,
		Cause: "as they are or as they were", Remedy: "or read other objects",
	}}))
}
