package profile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/symbol"
)

// The names are those that programs of these libraries have in backtraces.
func TestAllocator(t *testing.T) {
	for _, name := range []string{"malloc", "__libc_malloc", "calloc", "__GI___libc_malloc", "_int_malloc", "je_malloc", "je_arena_malloc_hard", "mi_heap_malloc",
		"tc_malloc", "__interceptor_calloc", "__wrap_malloc", "_malloc_r", "_calloc_r", "posix_memalign", "strdup", "__GI___strdup", "vasprintf", "xmalloc", "xstrdup",
		"operator new(unsigned long)", "operator new[](unsigned int)", "operator new(unsigned long, std::nothrow_t const&)",
		"std::__new_allocator<char>::allocate(unsigned long, void const*)", "std::allocator_traits<std::allocator<int> >::allocate(std::allocator<int>&, unsigned long)",
		"std::vector<int, std::allocator<int> >::_M_realloc_insert<int const&>(__gnu_cxx::__normal_iterator<int*, std::vector<int, std::allocator<int> > >, int const&)",
		"void std::vector<int, std::allocator<int> >::emplace_back<int>(int&&)", "int& std::vector<int, std::allocator<int> >::emplace_back<int>(int&&)",
		"std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >::_M_create(unsigned long&, unsigned long)",
		"std::__1::basic_string<char, std::__1::char_traits<char>, std::__1::allocator<char>>::append(char const*)",
		"std::_Rb_tree<int, int, std::_Identity<int>, std::less<int>, std::allocator<int> >::_M_create_node<int>(int&&)",
		"std::map<int, int>::operator[](int const&)", "std::shared_ptr<Foo> std::make_shared<Foo>()", "__gnu_cxx::new_allocator<char>::allocate(unsigned long, void const*)",
		"alloc::alloc::alloc", "alloc::raw_vec::RawVec<T,A>::grow_one", "<alloc::vec::Vec<T> as core::clone::Clone>::clone", "__rust_alloc", "__rdl_alloc",
		"<T as alloc::slice::hack::ConvertVec>::to_vec", "hashbrown::raw::RawTable<T,A>::reserve_rehash",
		"_PyObject_Malloc", "PyMem_Malloc", "_PyObject_GC_New", "PyObject_GC_NewVar", "_PyEval_EvalFrameDefault", "_PyFunction_Vectorcall", "PyType_GenericAlloc", "PyUnicode_New", "list_resize",
		"g_malloc", "g_malloc0", "g_strdup", "g_slice_alloc", "g_hash_table_insert", "pvPortMalloc", "heap_caps_malloc", "heap_caps_malloc_base", "multi_heap_malloc", "tlsf_malloc",
		"k_malloc", "z_thread_aligned_alloc", "sys_heap_alloc", "mm_malloc", "kmm_zalloc", "lws_malloc", "_lws_malloc", "lws_zalloc", "_realloc", "lws_realloc", "lwsac_use", "lwsac_use_zero",
		"uv__malloc", "sqlite3Malloc", "sqlite3DbMallocRawNN", "xmlMallocAtomic", "cJSON_New_Item", "CRYPTO_malloc", "CRYPTO_zalloc", "heap_alloc", "runtime.mallocgc"} {
		if !profile.Allocator(name) {
			t.Errorf("%s: no allocator", name)
		}
	}
	for _, name := range []string{"main", "connection", "parse_line", "allocate_buffers", "my_vector_push", "do_work", "lws_create_context", "lws_http_action", "g_main_loop_run",
		"app::alloc_pool::grow", "std::thread::_State_impl<int>::_M_run()", "Foo::vector::push()", "PyInit_foo", "sqlite3_open", "xmlParseDoc", "curl_easy_perform", "k_sleep",
		"http_malloc_stats", "operator<<(std::ostream&, Foo const&)", "xTaskCreate", "dup_header", "", "0x401234", "app+0x12", "(no frames)", "uv_run", "std::sort<int*>(int*, int*)"} {
		if profile.Allocator(name) {
			t.Errorf("%s: is taken for an allocator", name)
		}
	}
}

// stacks returns a function that makes a stack of names: "a+b" is a, inlined in b, and "?" an address of no
// known module.
func stacks() func(names string) []symbol.Addr {
	addrs := map[string]symbol.Addr{}
	return func(names string) (list []symbol.Addr) {
		for _, name := range strings.Fields(names) {
			if _, known := addrs[name]; !known {
				l := &symbol.Location{}
				for _, f := range strings.Split(name, "+") {
					l.Frames = append(l.Frames, symbol.Frame{Func: f, Name: f, File: f + ".c"})
				}
				if name == "?" {
					l = nil
				}
				addrs[name] = symbol.Addr{PC: uint64(len(addrs) + 1), Location: l}
			}
			list = append(list, addrs[name])
		}
		return list
	}
}

// Allocators are left out at the inner end only, and never all of a path.
func TestFold(t *testing.T) {
	stack := stacks()
	b := profile.NewBuilder(0)
	for _, names := range []string{"malloc xmalloc parse main", "malloc xmalloc+parse main", "malloc parse malloc main", "malloc calloc", "parse main", "malloc 0x99"} {
		b.Add(b.Path(stack(names)), profile.Value{Bytes: 8, Count: 1})
	}
	p, err := profile.New(b.End(profile.DumpInfo{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		view profile.View
		want []string
	}{
		{profile.View{By: profile.ByFunction, Fold: true}, []string{"parse main:24", "parse malloc main:8", "malloc calloc:8", "0x99:8"}},
		{profile.View{By: profile.ByFunction}, []string{"malloc xmalloc parse main:16", "malloc parse malloc main:8", "malloc calloc:8", "parse main:8", "malloc 0x99:8"}},
	} {
		var got []string
		for row := range p.View(c.view).Rows() {
			var names []string
			for _, s := range row.Stack() {
				names = append(names, s.String())
			}
			got = append(got, fmt.Sprintf("%s:%d", strings.Join(names, " "), row.Value().Bytes))
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%v, fold %v: %v, want %v", c.view.By, c.view.Fold, got, c.want)
		}
	}
}

// Fold leaves out the start of the program and addresses without names at the outer end of a path, if a
// function remains that is no allocator. Long paths, which are nodes of a tree, and short ones, and the
// formats for other tools, do the same.
func TestFoldStart(t *testing.T) {
	stack := stacks()
	outer := []string{"", " _start", " ? _start", " 0x99 _start", " 0x99 0x98", " __libc_start_main@GLIBC_2.34 0x99 _start", " __libc_start_call_main"}
	for _, long := range []int{0, 60} {
		middle := strings.Repeat(" middle", long)
		for _, c := range []struct{ in, want string }{
			{"malloc parse main" + middle, "parse main" + middle},
			{"malloc 0x77 main" + middle, "0x77 main" + middle},
		} {
			b := profile.NewBuilder(0)
			for i, o := range outer {
				b.Add(b.Path(stack(c.in+o)), profile.Value{Bytes: uint64(i + 1), Count: 1})
			}
			p, err := profile.New(b.End(profile.DumpInfo{}))
			if err != nil {
				t.Fatal(err)
			}
			p = p.View(profile.View{By: profile.ByFunction, Fold: true})
			var got []string
			for row := range p.Rows() {
				var names []string
				for _, s := range row.Stack() {
					names = append(names, s.String())
				}
				got = append(got, strings.Join(names, " "))
			}
			if len(got) != 1 || got[0] != c.want {
				t.Errorf("%d frames: %q, want %q", long, got, c.want)
			}
			for _, addrs := range p.Stacks() {
				if len(addrs) != len(strings.Fields(c.want)) {
					t.Errorf("%d addresses, want %d", len(addrs), len(strings.Fields(c.want)))
				}
			}
		}
	}
	// Nothing remains but allocators: the start is all that tells the paths apart.
	for _, c := range []struct{ in, want string }{{"malloc _start", "_start"}, {"malloc 0x99", "0x99"}, {"0x77 _start", "0x77 _start"}, {"malloc", "malloc"}, {"parse malloc _start", "parse malloc"}} {
		b := profile.NewBuilder(0)
		path := b.Path(stack(c.in))
		b.Add(path, profile.Value{Bytes: 8, Count: 1})
		p, err := profile.New(b.End(profile.DumpInfo{}))
		if err != nil {
			t.Fatal(err)
		}
		p = p.View(profile.View{By: profile.ByFunction, Fold: true})
		one, _ := p.Stack(path)
		for name, sites := range map[string][]profile.Site{"rows": p.Top(profile.Bytes, 1)[0].Stack(), "path": one} {
			var names []string
			for _, s := range sites {
				names = append(names, s.String())
			}
			if got := strings.Join(names, " "); got != c.want {
				t.Errorf("%s, %s: %q, want %q", c.in, name, got, c.want)
			}
		}
	}
}
