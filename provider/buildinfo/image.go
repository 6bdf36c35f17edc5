/*
Copyright 2026 The synchub Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package buildinfo

import (
	"regexp"
	"strings"
)

// ImageProject is where releases push their images: the host of the registry, and the project there. The values of the charts have it
// too, and the variable IMAGE_PROJECT of the workflows.
const ImageProject = "ghcr.io/synchub-dev"

// Image returns the image of a program in the version of a release.
func Image(program, version string) string {
	return ImageProject + "/" + program + ":" + strings.TrimPrefix(version, "v")
}

var release = regexp.MustCompile(`^v?[0-9]+\.[0-9]+\.[0-9]+(-(alpha|beta|rc)\.[0-9]+)?$`)

// IsRelease reports whether a version is a release, whose images are in a registry.
func IsRelease(version string) bool { return release.MatchString(version) }
