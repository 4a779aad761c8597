from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("feedback_app", "0038_views_of_all_lists")]
    operations = [migrations.DeleteModel("DefaultView"), migrations.DeleteModel("SavedView")]
