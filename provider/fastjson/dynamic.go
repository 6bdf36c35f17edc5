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

package fastjson

import (
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// NewDynamicClient is [dynamic.NewForConfigAndClient] for a client that decodes each response only once.
func NewDynamicClient(config *rest.Config, client *http.Client) (dynamic.Interface, error) {
	return newDynamicClient(config, client, nil)
}

// NewFilteringClient returns a function like [NewDynamicClient] for a client whose lists and watches leave out the objects that the
// filter drops. Such an object is not decoded. Rarely one is returned nevertheless, so the caller must check them too.
func NewFilteringClient(filter Filter) func(*rest.Config, *http.Client) (dynamic.Interface, error) {
	return func(config *rest.Config, client *http.Client) (dynamic.Interface, error) {
		return newDynamicClient(config, client, &filter)
	}
}

// newDynamicClient returns a client whose filter may be nil.
func newDynamicClient(config *rest.Config, client *http.Client, filter *Filter) (dynamic.Interface, error) {
	config = dynamic.ConfigFor(config)
	config.NegotiatedSerializer = withFastDecoders(config.NegotiatedSerializer, filter)
	config.GroupVersion = nil
	// The dynamic client sets the whole path of each request.
	config.APIPath = "/unused"
	direct, err := rest.UnversionedRESTClientForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	return dynamic.New(direct), nil
}

// negotiatedSerializer is the dynamic client's serializer with other media types.
type negotiatedSerializer struct {
	runtime.NegotiatedSerializer
	mediaTypes []runtime.SerializerInfo
}

// SupportedMediaTypes returns the cached media types. The client calls it for each request.
func (n negotiatedSerializer) SupportedMediaTypes() []runtime.SerializerInfo { return n.mediaTypes }

// withFastDecoders returns the serializer with fast decoders for JSON and its watch streams, which drop objects if there is a filter.
func withFastDecoders(serializer runtime.NegotiatedSerializer, filter *Filter) runtime.NegotiatedSerializer {
	types := slices.Clone(serializer.SupportedMediaTypes())
	for i := range types {
		if types[i].MediaType == runtime.ContentTypeJSON {
			types[i].Serializer = fastSerializer{types[i].Serializer}
			stream := *types[i].StreamSerializer
			stream.Serializer, stream.Framer = watchEventSerializer{stream.Serializer}, framer{stream.Framer, filter}
			if filter != nil {
				types[i].Serializer = filteringSerializer{types[i].Serializer, filter}
			}
			types[i].StreamSerializer = &stream
		}
	}
	return negotiatedSerializer{serializer, types}
}

// fastSerializer decodes objects and lists. It passes all other data, and data that it cannot decode, to the wrapped
// serializer.
type fastSerializer struct{ runtime.Serializer }

// Decode decodes an object. into is nil for objects in watch events, and for responses that may be errors.
func (o fastSerializer) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	object := into
	if into == nil {
		object = &unstructured.Unstructured{}
	}
	if _, ok := object.(runtime.Unstructured); ok {
		_, kind, err := unstructured.UnstructuredJSONScheme.Decode(data, defaults, object)
		if err == nil && kind.Version != "" && (into != nil || kind.Kind != "Status") {
			return object, kind, nil
		}
	}
	return o.Serializer.Decode(data, defaults, into)
}
