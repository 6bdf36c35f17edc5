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

package transport_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/synchub-dev/synchub/provider/transport"
)

// A page that is too large is divided, and the limit grows again with the next pages.
func TestPages(t *testing.T) {
	var limits []int64
	list := func(_ context.Context, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
		limits = append(limits, options.Limit)
		page := &metav1.PartialObjectMetadataList{}
		switch options.Continue {
		case "":
			page.Continue = "large"
		case "large":
			if options.Limit > 1 {
				return nil, &transport.ExceededError{Divisible: true}
			}
			page.Continue = "failing"
		case "failing":
			return nil, errors.New("no")
		}
		return page, nil
	}
	var errs []error
	for _, err := range transport.Pages(t.Context(), metav1.ListOptions{Limit: 9}, list) {
		errs = append(errs, err)
	}
	if !slices.Equal(limits, []int64{9, 9, 1, 2}) {
		t.Errorf("requested pages of %d objects", limits)
	}
	if len(errs) != 3 || errs[0] != nil || errs[1] != nil || errs[2] == nil {
		t.Errorf("got %v", errs)
	}
	for _, err := range transport.Pages(t.Context(), metav1.ListOptions{Limit: 4}, list) {
		if err != nil {
			t.Error(err)
		}
		break
	}
	if last := limits[len(limits)-1]; len(limits) != 5 || last != 4 {
		t.Errorf("a caller that stops gets another page: %d", limits)
	}
}
