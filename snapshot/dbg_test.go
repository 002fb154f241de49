package snapshot
import ("testing";"os";"strconv";"strings";"bytes";"fmt")
func TestDbg(t *testing.T){
	fs,_:=os.ReadDir("testdata/fuzz/FuzzRead")
	for _,e:=range fs {
	raw,_:=os.ReadFile("testdata/fuzz/FuzzRead/"+e.Name())
	line:=strings.Split(string(raw),"\n")[1]
	line=strings.TrimSuffix(strings.TrimPrefix(line,"[]byte("),")")
	data,_:=strconv.Unquote(line)
	f,err:=read1([]byte(data))
	if err!=nil{t.Log(err);continue}
	a:=asJSON(t,f)
	var b bytes.Buffer; WritePickle(&b,f)
	h,_:=read1([]byte(a))
	g,_:=read1(b.Bytes())
	for _,x:=range []*File{g,h} { c:=asJSON(t,x)
	for i:=range a { if i>=len(c)||a[i]!=c[i] {fmt.Println("DIFF",a[max(0,i-200):min(len(a),i+200)],"\n----\n",c[max(0,i-200):min(len(c),i+200)]);break}}
	}}
}
