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

package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/apis/schemas/structural"
)

// clusterReader asks one cluster.
type clusterReader struct{ cluster rest.Interface }

// getOpenAPI returns an OpenAPI document.
func (r clusterReader) getOpenAPI(ctx context.Context, path ...string) ([]byte, error) {
	return r.get(ctx, structural.DocumentBytes, path...)
}

// get returns the body of a successful answer, which can be decoded in bounded time if it is JSON. The error is a
// [*structural.TooLargeError] if it is beyond a limit. Other answers are API status errors.
func (r clusterReader) get(ctx context.Context, limit int, path ...string) (_ []byte, err error) {
	body, err := r.cluster.Get().AbsPath(path...).SetHeader("Accept", "application/json").Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	content, err := io.ReadAll(io.LimitReader(body, int64(limit)+1))
	if err != nil {
		return nil, err
	}
	if err := structural.CheckJSON(content, limit); err != nil {
		return nil, err
	}
	return content, nil
}

func (r clusterReader) getJSON(ctx context.Context, into any, path ...string) error {
	content, err := r.get(ctx, structural.DefinitionBytes, path...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(content, into); err != nil {
		return fmt.Errorf("decoding the answer from %v: %w", path, err)
	}
	return nil
}
