/* cjson.c: parses, prints, changes and compares documents. */
#include <stdlib.h>

#include "cJSON.h"
#include "cJSON_Utils.h"
#include "real.h"

static const char *const documents[] = {
	"{\"name\":\"x\",\"list\":[1,2.5e3,-7,true,false,null,\"\\u00e9\\n\\ud83d\\ude00\"],\"deep\":{\"a\":{\"b\":{\"c\":[[[[1],2],3],{}]}}}}",
	"[{\"id\":1,\"tags\":[\"a\",\"b\"]},{\"id\":2,\"tags\":[]},{\"id\":3,\"more\":{\"z\":1,\"y\":2,\"x\":3}}]",
	"{\"bad\":[1,2,", "[1,2,]", "\"alone\"", "{\"a\":tru}", "",
};

void drive(void)
{
	unsigned i, k;

	for (i = 0; i < sizeof documents / sizeof *documents; i++) {
		cJSON *d = cJSON_Parse(documents[i]), *e, *patch, *merge;

		if (!d)
			continue;
		free(cJSON_Print(d));
		free(cJSON_PrintUnformatted(d));
		free(cJSON_PrintBuffered(d, 8, 1));
		e = cJSON_Duplicate(d, 1);
		cJSON_Compare(d, e, 1);
		if (cJSON_IsObject(e)) {
			cJSON_AddNumberToObject(e, "number", 12.25);
			cJSON_AddItemToObject(e, "array", cJSON_CreateIntArray((const int[]){1, 2, 3}, 3));
			cJSON_AddItemToObject(e, "strings", cJSON_CreateStringArray((const char *const[]){"p", "q"}, 2));
			cJSON_ReplaceItemInObject(e, "name", cJSON_CreateString("y"));
			cJSON_DeleteItemFromObject(e, "deep");
			cJSONUtils_SortObject(e);
		} else if (cJSON_IsArray(e)) {
			for (k = 0; k < 5; k++)
				cJSON_InsertItemInArray(e, (int)k, cJSON_CreateRaw("[0]"));
		}
		patch = cJSONUtils_GeneratePatches(d, e);
		cJSONUtils_ApplyPatches(d, patch);
		merge = cJSONUtils_GenerateMergePatch(d, e);
		d = cJSONUtils_MergePatch(d, merge);
		free(cJSONUtils_FindPointerFromObjectTo(d, d ? d->child : NULL));
		cJSON_Delete(merge);
		cJSON_Delete(patch);
		cJSON_Delete(d);
		cJSON_Delete(e);
	}
}
