// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// tagAnnotation is the annotation with the tag of an entry in a layout.
const tagAnnotation = "org.opencontainers.image.ref.name"

// release is everything that is published of an image for one version: the index, an image for each program, and the artifacts that
// refer to each image. It has only the programs if only bills of materials are to be written, and no programs if an earlier run wrote it.
type release struct {
	product  product
	programs []program
	images   []v1.Image
	boms     []v1.Image
	index    v1.ImageIndex
}

// newRelease builds the programs in the folder scratch, and their images.
func newRelease(ctx context.Context, s settings, of product, scratch string) (*release, error) {
	programs, err := buildAll(ctx, s, scratch, of)
	if err != nil {
		return nil, err
	}
	r := &release{product: of, programs: programs}
	if s.sbomOnly {
		return r, nil
	}
	for _, each := range programs {
		bom, err := newBOM(each)
		if err != nil {
			return nil, err
		}
		err = step("packing "+of.name+" for linux/"+each.arch, func() error { return r.add(each, bom) })
		if err != nil {
			return nil, err
		}
	}
	r.index = newIndex(r.images, programs)
	return r, nil
}

func (r *release) add(p program, bom []byte) error {
	image, err := newImage(p)
	if err != nil {
		return err
	}
	attached, err := attach(image, bom, bomMediaType)
	if err != nil {
		return err
	}
	r.images, r.boms = append(r.images, image), append(r.boms, attached)
	return nil
}

// write writes the release to its folder in the output: as an OCI layout, and as an archive for each architecture that docker and
// podman can load.
func (r *release) write(output string) error {
	folder := r.product.folder(output)
	if err := writeBOMs(folder, r.programs); err != nil || len(r.images) == 0 {
		return err
	}
	if err := r.writeLayout(filepath.Join(folder, "layout")); err != nil {
		return err
	}
	reference, err := name.NewTag(repository + r.product.suffix + ":" + tag(r.programs[0].version()))
	if err != nil {
		return fmt.Errorf("name the image: %w", err)
	}
	for i, image := range r.images {
		path := filepath.Join(folder, r.product.file(r.programs[i].arch, ".tar"))
		if err := tarball.WriteToFile(path, reference, image); err != nil {
			return fmt.Errorf("write the archive for linux/%s: %w", r.programs[i].arch, err)
		}
		logf("wrote %s: docker load and podman load create %s", path, reference)
	}
	return nil
}

// writeLayout replaces an existing layout atomically.
func (r *release) writeLayout(folder string) error {
	unfinished := folder + ".unfinished"
	if err := os.RemoveAll(unfinished); err != nil {
		return fmt.Errorf("remove an unfinished layout: %w", err)
	}
	path, err := layout.Write(unfinished, empty.Index)
	if err != nil {
		return fmt.Errorf("begin the layout: %w", err)
	}
	annotation := map[string]string{tagAnnotation: tag(r.programs[0].version())}
	if err := path.AppendIndex(r.index, layout.WithAnnotations(annotation)); err != nil {
		return fmt.Errorf("add the images to the layout: %w", err)
	}
	for _, bom := range r.boms {
		if err := path.AppendImage(bom); err != nil {
			return fmt.Errorf("add a bill of materials to the layout: %w", err)
		}
	}
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("remove the old layout: %w", err)
	}
	if err := os.Rename(unfinished, folder); err != nil {
		return fmt.Errorf("put the layout in place: %w", err)
	}
	digest, err := r.index.Digest()
	if err == nil {
		logf("wrote %s, an OCI layout of the image %s with the digest %s", folder, r.product.name, digest)
	}
	return err
}

// readRelease reads the layout of an image in the output of an earlier run.
func readRelease(of product, output string) (*release, error) {
	top, err := layout.ImageIndexFromPath(filepath.Join(of.folder(output), "layout"))
	if err != nil {
		return nil, fmt.Errorf("read the layout of the image %s: %w", of.name, err)
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("read the layout of the image %s: %w", of.name, err)
	}
	r := &release{product: of}
	for _, entry := range manifest.Manifests {
		if entry.MediaType.IsIndex() {
			r.index, err = top.ImageIndex(entry.Digest)
		} else {
			var bom v1.Image
			bom, err = top.Image(entry.Digest)
			r.boms = append(r.boms, bom)
		}
		if err != nil {
			return nil, fmt.Errorf("read the layout of the image %s: %w", of.name, err)
		}
	}
	if r.index == nil {
		return nil, fmt.Errorf("the layout of the image %s has no index", of.name)
	}
	return r, nil
}

// checkPush checks whether a reference can be pushed to, before the build starts.
func checkPush(reference string) error {
	if reference == "" {
		return nil
	}
	if _, err := name.NewTag(reference, name.StrictValidation); err != nil {
		return fmt.Errorf("-push %q: want REPOSITORY:TAG, such as %s:v1.0.0: %w", reference, repository, err)
	}
	return nil
}

// target returns where the release is pushed to, given the reference of the first image.
func (r *release) target(reference string) (name.Tag, error) {
	first, err := name.NewTag(reference, name.StrictValidation)
	if err != nil {
		return name.Tag{}, fmt.Errorf("-push %q: %w", reference, err)
	}
	return first.Context().Registry.Repo(first.RepositoryStr() + r.product.suffix).Tag(first.TagStr()), nil
}

// push uploads the release. The tag, if there is to be one, is written last, so that it never refers to an incomplete release.
func (r *release) push(ctx context.Context, s settings) error {
	target, err := r.target(s.push)
	if err != nil {
		return err
	}
	digest, err := r.index.Digest()
	if err != nil {
		return err
	}
	var index name.Reference = target
	if s.untagged {
		index = target.Digest(digest.String())
	}
	options := []remote.Option{
		remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithTransport(encrypted{remote.DefaultTransport}),
	}
	return step("pushing "+index.Name(), func() error {
		for _, bom := range r.boms {
			digest, err := bom.Digest()
			if err != nil {
				return err
			}
			if err := remote.Write(target.Digest(digest.String()), bom, options...); err != nil {
				return fmt.Errorf("push a bill of materials: %w", err)
			}
		}
		if err := remote.WriteIndex(index, r.index, options...); err != nil {
			return fmt.Errorf("push the images: %w", err)
		}
		return nil
	})
}
